"""Training once more for a control, at the budget of the evaluated model.

As many epochs, the last one kept; where the links are the true ones, as many as validation allows, as in the run.
This module is not about what the control changes (`controls`).
"""

import shutil
from typing import Any

import numpy as np

from bridgehead.runs.encoded import PartRows
from bridgehead.runs.fitting import epoch_lines, fit_model, projecting
from bridgehead.runs.work import Work

CONTROLS_FOLDER = "controls"


def train_again(
    work: Work, part: PartRows, what: str, seed: int, *, direction: Any = None, exchanged: bool = False
) -> Any:
    """Train on `part` with `seed` and return what projects rows of the test part (`project_a`, `project_b`).

    `direction` is that of the loss where it differs from the run's. `exchanged` says that partners were: classes of
    side b then go to other items too, for they tell what belongs together. `what` names the training in the progress.
    Nothing of it stays on disk.
    """
    config = work.run.config
    changes = {"seed": seed, **({} if direction is None else {"direction": direction})}
    # With the true links validation can choose the epoch as it did for the run; with others it would choose by luck.
    chosen: dict[str, Any] = {"epochs": work.run.record("train")["epochs"]}
    if direction is not None:
        chosen = {"valid": work.first_part("valid")}
    folder = work.run.path(CONTROLS_FOLDER, f"{what} {seed}".replace("/", "_"))
    # Whatever a killed control left was of rows that are gone.
    shutil.rmtree(folder, ignore_errors=True)
    classes = work.classes(part)
    if exchanged and classes is not None and classes[1] is not None:
        classes = classes[0], np.random.default_rng([seed, len(classes[1])]).permutation(classes[1])
    fit_model(
        config,
        work.start,
        part,
        folder,
        train=config.train.model_copy(update=changes),
        classes=classes,
        **chosen,
        progress=epoch_lines(work.progress, "audit", f"{what}, seed {seed}: "),
    )
    model = projecting(config, folder, work.start.table, work.part("test"))
    # Wrong on purpose, and as large as the real one.
    shutil.rmtree(folder, ignore_errors=True)
    return model
