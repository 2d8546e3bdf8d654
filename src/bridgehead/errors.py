"""One class per mistake that a user can make.

Each class also derives from the built-in that fits, so that `except ValueError` keeps working. Every message says what
came, what was expected and what to do. This module is not about programming errors of ours: those stay as they are.
"""


class BridgeheadError(Exception):
    """Base of all errors that bridgehead raises on purpose."""


class ArgumentError(BridgeheadError, ValueError):
    """An argument of a function or an option of a command is outside what it may be."""


class UnknownIdError(ArgumentError, LookupError):
    """No item has the id that the user named."""


class ShapeError(BridgeheadError, ValueError):
    """An array does not have the number of rows, columns or dimensions that was expected."""


class NonFiniteRowsError(BridgeheadError, ValueError):
    """Rows hold NaN or infinity; the message names them."""


class DataError(BridgeheadError, ValueError):
    """The content of a data file cannot be used as it is."""


class InputFileNotFoundError(BridgeheadError, FileNotFoundError):
    """A file or folder that the user named does not exist."""


class ColumnError(BridgeheadError, KeyError):
    """A column that the user named is not in the file; the message lists those that are."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument; a sentence reads better as it is.
        return str(self.args[0]) if self.args else ""


class DecodeError(BridgeheadError, ValueError):
    """A file is not text in the encoding that was assumed; the message gives byte, row and option."""


class DuplicateIdError(BridgeheadError, ValueError):
    """Ids that must be unique occur more than once."""


class StructureError(BridgeheadError, ValueError):
    """A molecular structure cannot be parsed or is beyond the size limits."""


class LinksError(BridgeheadError, ValueError):
    """Links point outside the rows they are about, or there is none where one is needed."""


class EncoderError(BridgeheadError, ValueError):
    """An encoder cannot be made from what was given, or its stored state does not fit."""


class OfflineError(BridgeheadError, FileNotFoundError):
    """Something would have to be fetched from the network, and nothing is fetched unless asked for."""


class MissingExtraError(BridgeheadError, ImportError):
    """A package of an optional extra is not installed; the message gives the install line."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"this needs the package {package!r}, which is not installed; run: pip install 'bridgehead[{extra}]'"
        )
        self.package, self.extra = package, extra

    def __reduce__(self) -> tuple[type["MissingExtraError"], tuple[str, str]]:
        # Errors travel from worker processes; the default would call the class with the message alone.
        return type(self), (self.package, self.extra)


class ConfigError(BridgeheadError, ValueError):
    """A config has a key or a value that is not understood."""


class FormatVersionError(BridgeheadError, ValueError):
    """A stored file has a format or a version that this release does not read."""


class RunBusyError(BridgeheadError, BlockingIOError):
    """Another process is writing the same folder."""


class RunStateError(BridgeheadError, RuntimeError):
    """A run folder lacks a stage that is needed, or holds parts that do not belong together."""


class MismatchError(BridgeheadError, ValueError):
    """Parts that must belong together (model, encoders, rows, items) have different fingerprints."""


class NotFittedError(BridgeheadError, ValueError, AttributeError):
    """Something that must be fitted first is used before; the bases are those of scikit-learn's error of the name."""


class SandboxLimitError(BridgeheadError, ValueError):
    """Work on a structure from outside took more time or memory than it may, or broke its process."""


class SandboxBusyError(BridgeheadError, RuntimeError):
    """Too many structures wait to be worked on; the same request may go through later."""


class ServiceError(BridgeheadError, RuntimeError):
    """The service refused, failed, or could not be understood.

    `status` is the HTTP status, None where there was no answer; `kind` the class of error that the service named, ""
    where it named none; `retry_after` the seconds that it asked to wait, None where it asked for nothing.
    """

    def __init__(self, message: str, status: int | None = None, kind: str = "", retry_after: float | None = None):
        super().__init__(message)
        self.status, self.kind, self.retry_after = status, kind, retry_after
