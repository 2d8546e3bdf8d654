"""Where live encoders compute and in which precision: device, autocast, loss scaling, and steps that are left out.

Weights and moments stay float32 whatever the precision, and losses normalise and multiply in float32 (they are taken
outside of `autocast`). This module is not about the loop, and with accelerate only about what it is asked for here.
"""

import importlib.util
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, Literal

import torch

from bridgehead.errors import ArgumentError, MissingExtraError, NonFiniteRowsError, RunStateError

Kind = Literal["float32", "bf16", "fp16"]
_DTYPES = {"float32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
_ACCELERATE = {"float32": "no", "bf16": "bf16", "fp16": "fp16"}
MOST_SKIPPED_IN_A_ROW = 30
"""Halving the scale from 65536 this often leaves 6e-5: what is still not finite then is no matter of the scale."""

NamedParameters = Iterable[tuple[str, torch.nn.Parameter]]


class Precision:
    """A device and a precision of one training.

    `device` is "cpu", "cuda", "cuda:1", "mps" or another of torch's, or "accelerate": what accelerate finds or was
    launched with. `kind` is "float32", "bf16" or "fp16": the dtype in which `autocast` lets matrix products run. fp16
    scales the loss, since gradients under 6e-8 would be lost, and lowers the scale where one overflows: that step is
    left out and counted in `skipped_steps`.

    Raises `ArgumentError` for a device that is not there (the message says what is) and `MissingExtraError` for
    accelerate where it is not installed.
    """

    device: torch.device
    kind: Kind
    skipped_steps: int
    skipped_in_a_row: int

    def __init__(self, device: str = "cpu", kind: Kind = "float32") -> None:
        if kind not in _DTYPES:
            raise ArgumentError(f"precision = {kind!r}; expected one of {', '.join(_DTYPES)}")
        self.kind = kind
        self.skipped_steps = self.skipped_in_a_row = 0
        self._autocast: Callable[[], AbstractContextManager[Any]]
        self._scaler: Any = None
        if device == "accelerate":
            self._take_accelerate()
        else:
            self._take_torch(device)

    def _take_torch(self, device: str) -> None:
        self.device, dtype = available_device(device), _DTYPES[self.kind]
        self._autocast = nullcontext if dtype is None else lambda: torch.autocast(self.device.type, dtype)
        if self.kind == "fp16":
            self._scaler = torch.amp.GradScaler(self.device.type)

    def _take_accelerate(self) -> None:
        if importlib.util.find_spec("accelerate") is None:
            raise MissingExtraError("accelerate", "hub")
        from accelerate import Accelerator  # type: ignore[import-untyped]

        try:
            accelerator = Accelerator(mixed_precision=_ACCELERATE[self.kind])
        except ValueError as error:
            # Its settings are those of the process: the first one that is made decides.
            raise ArgumentError(
                f"accelerate does not take precision = {self.kind!r} ({str(error).split('.')[0]}); name the device "
                "itself instead of 'accelerate', or train in a process of its own"
            ) from error
        if accelerator.num_processes > 1:
            raise ArgumentError(
                f"accelerate runs {accelerator.num_processes} processes; encoders are trained in one: launch with "
                "--num_processes 1"
            )
        if self.kind == "fp16" and accelerator.scaler is None:
            raise ArgumentError(
                f"accelerate has no fp16 on {accelerator.device.type}; use bf16, or name the device itself"
            )
        self.device, self._autocast, self._scaler = accelerator.device, accelerator.autocast, accelerator.scaler

    def autocast(self) -> AbstractContextManager[Any]:
        """Return a context in which encoders run in this precision; nothing happens in it with float32."""
        return self._autocast()

    def backward(self, loss: torch.Tensor) -> None:
        """Add the gradients of `loss`, with fp16 those of the scaled loss, which `step` divides again."""
        scaled = loss if self._scaler is None else self._scaler.scale(loss)
        scaled.backward()

    def step(self, optimiser: torch.optim.Optimizer, named: NamedParameters) -> bool:
        """Let `optimiser` take its step and return True, or leave the step out, count it and return False.

        A step is left out when a gradient is not finite and fp16 can be the reason. In another precision, or after
        `MOST_SKIPPED_IN_A_ROW` of them, that is a fault: raises `NonFiniteRowsError` with the name of the weight.
        `named` are the weights that `optimiser` holds, with their names.
        """
        if self._scaler is not None:
            self._scaler.unscale_(optimiser)
        bad = _first_not_finite(named)
        if bad is None:
            optimiser.step()
            self.skipped_in_a_row = 0
        else:
            self.skipped_in_a_row += 1
            if self._scaler is None or self.skipped_in_a_row > MOST_SKIPPED_IN_A_ROW:
                raise NonFiniteRowsError(self._reason(bad))
            self.skipped_steps += 1
        if self._scaler is not None:
            self._scaler.update()
        return bad is None

    def _reason(self, name: str) -> str:
        often = "" if self._scaler is None else f" in {self.skipped_in_a_row} steps one after the other"
        return (
            f"the gradient of {name} holds NaN or infinity{often} ({self.kind}); nothing was changed by this step: "
            "check inputs and learning rate" + ("" if self._scaler is None else ", or use bf16 or float32")
        )

    def state(self) -> dict[str, torch.Tensor]:
        """Return what a checkpoint must hold: counts, and with fp16 the scale of the loss."""
        numbers = {"skipped_steps": float(self.skipped_steps), "skipped_in_a_row": float(self.skipped_in_a_row)}
        if self._scaler is not None:
            content = self._scaler.state_dict()
            numbers |= {"loss_scale": content["scale"], "growth_tracker": float(content["_growth_tracker"])}
        return {name: torch.tensor(number, dtype=torch.float64) for name, number in numbers.items()}

    def load_state(self, tensors: dict[str, torch.Tensor]) -> None:
        """Put back what `state` gave. Raises `RunStateError` when something is missing."""
        missing = self.state().keys() - tensors.keys()
        if missing:
            raise RunStateError(f"the checkpoint lacks {', '.join(sorted(missing))}; remove it and train again")
        self.skipped_steps = int(tensors["skipped_steps"])
        self.skipped_in_a_row = int(tensors["skipped_in_a_row"])
        if self._scaler is not None:
            content = self._scaler.state_dict()
            content |= {"scale": float(tensors["loss_scale"]), "_growth_tracker": int(tensors["growth_tracker"])}
            self._scaler.load_state_dict(content)


def available_device(name: str) -> torch.device:
    """Return torch's device of this name. Raises `ArgumentError`, saying what there is, when it cannot be used."""
    try:
        device = torch.device(name)
        torch.empty(1, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError, ImportError) as error:
        # ImportError: torch knows the name of a device whose own package is not installed.
        kind, count = accelerator()
        found = ", ".join(["cpu", *(f"{kind}:{number}" for number in range(count))])
        raise ArgumentError(f"device = {name!r} cannot be used; there is {found} on this machine") from error
    return device


@cache
def accelerator() -> tuple[str, int]:
    """Return kind and number of the accelerators that torch finds here: ("cuda", 2); ("", 0) where there are none."""
    if torch.cuda.is_available():
        return "cuda", torch.cuda.device_count()
    if torch.backends.mps.is_available():
        return "mps", 1
    # Others (xpu, npu) are known to newer releases of torch only.
    found = getattr(torch, "accelerator", None)
    if found is None or not found.is_available():
        return "", 0
    return found.current_accelerator().type, found.device_count()


def _first_not_finite(named: NamedParameters) -> str | None:
    """Return the name of the first weight whose gradient is not finite, or None."""
    gradients = {name: parameter.grad for name, parameter in named if parameter.grad is not None}
    if not gradients:
        return None
    # A sum is not finite if one of its terms is not: one pass over memory, and the names are looked for only then.
    sums = torch.stack([gradient.detach().sum() for gradient in gradients.values()])
    if bool(torch.isfinite(sums).all()):
        return None
    return next((name for name, gradient in gradients.items() if not bool(torch.isfinite(gradient).all())), None)
