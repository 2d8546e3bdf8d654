"""Keeping the indexes of a run up to date with a file of items, without training or indexing anything again.

`reading` says what the file holds, `standing` what an index holds of it already, `applying` brings one index up to
date, `far` says which new items lie far from those that were trained on, `report` what was done, `stage` does all of
it. This folder is not about how an index is written (`index`) or built (`indexing`).
"""
