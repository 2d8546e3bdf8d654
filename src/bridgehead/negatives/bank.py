"""A memory bank: rows of earlier batches as further candidates, so that an anchor meets more than its batch.

A queue for each side, first in, first out (MoCo, He et al. 2020, section 3.1, without its momentum encoder; for two
sides, cross-batch memory of Wang et al. 2020, arXiv:1912.06798). Rows in it are as old as the queue is long in batches
and get no gradient. This module is not about a loss: it hands rows and links to any.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.links import Links
from bridgehead.negatives.arguments import only_links, whole

LossOf = Callable[[torch.Tensor, torch.Tensor, Links, str], torch.Tensor]


@dataclass(frozen=True, eq=False)
class Extended:
    """A batch with what the bank adds to each side.

    a to b: anchors `z_a` (n_a, d), candidates `candidates_b` (n_b + m_b, d), truth `forth` (n_a x (n_b + m_b)).
    b to a: anchors `z_b` (n_b, d), candidates `candidates_a` (n_a + m_a, d), truth `back` ((n_a + m_a) x n_b).
    The batch's own rows come first. `items_a`, `items_b` are the item numbers of the candidates, for who needs their
    classes or rows elsewhere. `plain` is the truth within the batch; `n_bank` = (m_a, m_b).
    """

    z_a: torch.Tensor
    z_b: torch.Tensor
    candidates_a: torch.Tensor
    candidates_b: torch.Tensor
    items_a: torch.Tensor
    items_b: torch.Tensor
    plain: Links
    forth: Links
    back: Links
    n_bank: tuple[int, int]


class MemoryBank(nn.Module):
    """Queues of at most `size` unit rows (float32, detached) and their item numbers, for both sides.

    All of it is in the `state_dict`. A size of 0 is allowed and always empty. Keep `size` under the number of links of
    an epoch: beyond it the queue holds several old copies of an item. Raises `ArgumentError`.
    """

    next_place: torch.Tensor
    filled: torch.Tensor

    def __init__(self, size: int, dim: int) -> None:
        super().__init__()
        self.size, self.dim = whole("size", size, 0, ", the rows of each side"), whole("dim", dim, 1, ", the columns")
        size, dim = self.size, self.dim
        for side in "ab":
            self.register_buffer(f"rows_{side}", torch.zeros(size, dim))
            self.register_buffer(f"items_{side}", torch.full((size,), -1, dtype=torch.int64))
        # For each side where the next row goes, and how many there are.
        self.register_buffer("next_place", torch.zeros(2, dtype=torch.int64))
        self.register_buffer("filled", torch.zeros(2, dtype=torch.int64))

    @torch.no_grad()
    def push(self, z_a: torch.Tensor, items_a: Any, z_b: torch.Tensor, items_b: Any) -> None:
        """Put the rows of a batch in, the oldest out; call it after the batch's loss.

        `z_a` (n_a, d) and `z_b` (n_b, d) are normalised here; `items_a` (n_a,), `items_b` (n_b,) are their numbers
        among all items of the side, as the links have them. Of more than `size` rows the last stay.
        Raises `ShapeError`.
        """
        for number, (side, z, items) in enumerate((("a", z_a, items_a), ("b", z_b, items_b))):
            self._enqueue(number, side, z, self._items(side, items, z))

    def extended(self, z_a: torch.Tensor, items_a: Any, z_b: torch.Tensor, items_b: Any, links: Links) -> Extended:
        """Return the batch with the bank's rows as further candidates.

        Old rows of items that are in the batch are left out: the new ones are there, and an item is not to be told from
        its own older self. What is left is a positive where `links`, over all items, match it with the anchor (groups
        included), and a negative elsewhere. Raises `ShapeError` and `LinksError`.
        """
        numbers = {side: self._items(side, items, z) for side, items, z in (("a", items_a, z_a), ("b", items_b, z_b))}
        more_a, old_a = self._others("a", numbers["a"], z_a)
        more_b, old_b = self._others("b", numbers["b"], z_b)
        all_a, all_b = torch.cat([numbers["a"], old_a]), torch.cat([numbers["b"], old_b])
        here_a, here_b = _numpy(numbers["a"]), _numpy(numbers["b"])
        plain = only_links(links).within(here_a, here_b)
        return Extended(
            z_a,
            z_b,
            torch.cat([z_a, more_a]) if len(more_a) else z_a,
            torch.cat([z_b, more_b]) if len(more_b) else z_b,
            all_a,
            all_b,
            plain,
            links.within(here_a, _numpy(all_b)) if len(more_b) else plain,
            links.within(_numpy(all_a), here_b) if len(more_a) else plain,
            (len(more_a), len(more_b)),
        )

    def _enqueue(self, number: int, side: str, z: torch.Tensor, items: torch.Tensor) -> None:
        if not self.size:
            return
        rows, held = getattr(self, f"rows_{side}"), getattr(self, f"items_{side}")
        z, items = z[-self.size :], items[-self.size :]
        start = int(self.next_place[number])
        places = (start + torch.arange(len(z), device=rows.device)) % self.size
        z = z.detach().to(rows)
        # The largest magnitude first: squares of very large or small numbers would leave float32.
        largest = z.abs().amax(dim=1, keepdim=True)
        rows[places] = F.normalize(z / torch.where(largest > 0, largest, torch.ones_like(largest)), dim=1)
        held[places] = items
        self.next_place[number] = (start + len(z)) % self.size
        self.filled[number] = min(self.size, int(self.filled[number]) + len(z))

    def _others(self, side: str, items: torch.Tensor, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return rows and item numbers of the queue without the items of the batch."""
        rows, held = getattr(self, f"rows_{side}"), getattr(self, f"items_{side}")
        kept = torch.nonzero((held >= 0) & ~torch.isin(held, items)).flatten()
        return rows[kept].to(like), held[kept]

    def _items(self, side: str, items: Any, z: torch.Tensor) -> torch.Tensor:
        if not isinstance(z, torch.Tensor):
            raise ArgumentError(f"z_{side} is a {type(z).__name__}; expected a torch tensor (n, {self.dim})")
        try:
            found = torch.as_tensor(items, device=self.filled.device)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ArgumentError(f"items_{side} are no numbers of items ({error})") from error
        if found.numel() and (found.is_floating_point() or found.dtype == torch.bool or int(found.min()) < 0):
            raise ArgumentError(
                f"items_{side} are {items!r:.80}; expected whole numbers of 0 or more, one for each row"
            )
        found = found.to(torch.int64)
        if z.ndim != 2 or z.shape[1] != self.dim or found.shape != (len(z),):
            raise ShapeError(
                f"z_{side} has shape {tuple(z.shape)} and items_{side} {tuple(found.shape)}; expected (n, {self.dim}) "
                "and (n,), the number of each row's item"
            )
        return found


def bank_loss(loss_of: LossOf, extended: Extended, direction: str = "both") -> torch.Tensor:
    """Return the mean of the directions' losses, each with its candidates from the bank.

    `loss_of(z_a, z_b, links, direction) -> scalar` is any loss of two sides: it is called for "a_to_b" with the batch's
    rows of a and all candidates of b, and for "b_to_a" with all candidates of a and the batch's rows of b. An empty
    bank is one call with the batch itself: the plain loss, exactly. `direction`: "both", "a_to_b" or "b_to_a"; raises
    `ArgumentError` otherwise.
    """
    if direction not in ("both", "a_to_b", "b_to_a"):
        raise ArgumentError(f"direction = {direction!r}; expected 'both', 'a_to_b' or 'b_to_a'")
    e = extended
    if not any(e.n_bank):
        return loss_of(e.z_a, e.z_b, e.plain, direction)
    losses = []
    if direction != "b_to_a":
        losses.append(loss_of(e.z_a, e.candidates_b, e.forth, "a_to_b"))
    if direction != "a_to_b":
        losses.append(loss_of(e.candidates_a, e.z_b, e.back, "b_to_a"))
    return losses[0] if len(losses) == 1 else (losses[0] + losses[1]) / 2


def _numpy(items: torch.Tensor) -> npt.NDArray[np.int64]:
    return np.asarray(items.cpu().numpy(), dtype=np.int64)
