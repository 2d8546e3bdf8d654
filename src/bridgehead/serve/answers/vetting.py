"""Texts from outside that RDKit will read: each goes through the sandbox before this process reads it.

What passed once is known by its hash and passes again, and so is what did not. Not about the processes (`sandbox`).
"""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence

from bridgehead.errors import SandboxLimitError
from bridgehead.serve.sandbox import Sandbox

_TOGETHER = 20
# Without a bracket, a text with any other sign is not read as a structure (`molecules.reads_as_smiles`).
_SIGNS = frozenset("BCNOPSFIbcnopsrl*<>-=#$:/\\~().%+0123456789")


def may_be_structure(text: str, asked_for: bool = False) -> bool:
    """Say whether RDKit may come to read a text: one without white space, of signs that structures are written with.

    `asked_for`: the text is to be read as a structure, whatever it is written with.

    >>> may_be_structure("inhibits cyclooxygenase"), may_be_structure("aspirin"), may_be_structure("CCO")
    (False, False, True)
    """
    word = text.strip()
    if not word or len(word.split(None, 1)) > 1:
        return False
    return asked_for or "[" in word or _SIGNS.issuperset(word)


class Vetting:
    """Looks at texts in `sandbox`, and keeps of the last `most` whether they were harmless."""

    def __init__(self, sandbox: Sandbox, most: int) -> None:
        self._sandbox, self._most = sandbox, most
        self._known: OrderedDict[bytes, str] = OrderedDict()

    async def structures(self, texts: Sequence[str]) -> None:
        """Return once RDKit has read each text elsewhere within limits; what is no structure is harmless too.

        Raises `SandboxLimitError` where one took too much, `SandboxBusyError` where too many wait.
        """
        await self._look("inspect", texts)

    async def pattern(self, text: str) -> None:
        """As `structures`, for a text that is to be read as a substructure."""
        await self._look("pattern", [text])

    async def _look(self, task: str, texts: Sequence[str]) -> None:
        keys = {_key(task, text): text for text in texts}
        for key in keys:
            if known := self._known.get(key):
                raise SandboxLimitError(known)
        new = [key for key in keys if key not in self._known]
        for start in range(0, len(new), _TOGETHER):
            part = new[start : start + _TOGETHER]
            asked = [keys[key] for key in part]
            try:
                await self._sandbox.call(task, asked if task == "inspect" else asked[0])
            except SandboxLimitError as error:
                if len(part) == 1:
                    self._keep(part, str(error))
                raise
            self._keep(part, "")

    def _keep(self, keys: Sequence[bytes], why: str) -> None:
        for key in keys:
            self._known[key] = why
            self._known.move_to_end(key)
        while len(self._known) > self._most:
            self._known.popitem(last=False)


def _key(task: str, text: str) -> bytes:
    return hashlib.blake2b(f"{task}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
