"""The heads of a dual encoder as `TwoHeads`: the same function in the form that is written, and read without torch.

This module is not about encoders, which stay where they are.
"""

from typing import Any

import torch

from bridgehead.align.architecture import HeadConfig, HeadsConfig
from bridgehead.align.model import TwoHeads
from bridgehead.align.projection_head import ProjectionHead
from bridgehead.errors import ArgumentError

# Where a layer of `ProjectionHead.net` stands in `Head`.
_PLACES = {"0": "first", "2": "norms.0", "3": "rest.0"}


def heads_of(aligner: Any) -> TwoHeads:
    """Return copies of the heads of `aligner` (`proj_a`, `proj_b`, `loss_fn`) as one model, in evaluation mode.

    What the model gives for pooled rows is what the heads give, and s = 1 / temperature, learned and without bounds.
    `save_heads` writes it; with the rows of the aligner's encoders it is then used like any trained heads. Raises
    `ArgumentError` for heads that are no `ProjectionHead`.
    """
    sides = {"a": aligner.proj_a, "b": aligner.proj_b}
    for side, head in sides.items():
        if not isinstance(head, ProjectionHead):
            raise ArgumentError(f"proj_{side} is a {type(head).__name__}; expected a ProjectionHead")
    log_scale = -aligner.loss_fn.log_temperature.detach().float().cpu()
    config = HeadsConfig(_architecture(sides["a"]), _architecture(sides["b"]), float(log_scale.exp()), None, True)
    with torch.random.fork_rng(devices=[]):
        model = TwoHeads(config)
    weights = {
        f"head_{side}.{_PLACES[layer]}.{kind}": tensor.detach().float().cpu()
        for side, head in sides.items()
        for name, tensor in head.net.state_dict().items()
        for layer, kind in [name.split(".")]
    }
    model.load_state_dict({**weights, "scale.log_logit_scale": log_scale})
    return model.eval()


def _architecture(head: ProjectionHead) -> HeadConfig:
    width = head.config["input_dim"]
    return HeadConfig(
        input_dim=width,
        embed_dim=head.config["projection_dim"],
        hidden=(width,),
        activation="gelu",
        norm="layer",
        input_norm="none",
    )
