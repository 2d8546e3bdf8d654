"""Exact places of true candidates by cosine, both directions in one pass over tiles: how many are above, how many tied.

`exact` puts the parts together: rows (`cosine_rows`), which of them are the same (`layout`), levels of true scores
(`levels`), float32 products that screen (`screen`, `tiles`) in `threads`, and float64 that decides (`undecided`). What
follows from the counts is in `bridgehead.evaluate.ties`.
"""
