"""Cross-validation of a run: when it is due, its trainings, what they left, what it all says, and two runs over folds.

Which items may not be separated is said by `pairs.folds`, what spreads mean by `evaluate.folds`.
"""
