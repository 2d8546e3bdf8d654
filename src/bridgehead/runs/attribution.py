"""Whose data a run is made of, in the sentences that their licences ask for.

Light, so that a service can show them without what writes reports. Not about licences that meet (`report.licences`).
"""

from bridgehead.pairs.chemicals_data import CHEMICALS_ATTRIBUTION
from bridgehead.pairs.starter_data import ATTRIBUTION
from bridgehead.runs.config import CHEMICALS, STARTER, RunConfig


def attribution_of(config: RunConfig) -> str:
    """Return what has to be shown with whatever comes from the run's data; "" where nothing is known of it."""
    said = []
    if config.pairs.path == STARTER:
        said.append(ATTRIBUTION)
    elif config.pairs.licence is not None:
        said.append(f"Pairs under {config.pairs.licence}.")
    if CHEMICALS in config.index.extra_a:
        said.append(CHEMICALS_ATTRIBUTION)
    return " ".join(said)
