"""Many trainings of one architecture in one batched computation: seeds, directions, shuffled links, a side hidden.

`fit` is what users call; each member ends as if it had been trained alone. This folder is not about the single training
that it equals (`train.loop`, `train.rows_task`).
"""
