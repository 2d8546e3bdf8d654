"""The stage index: what a run makes searchable, with rows under the refit and the evaluated heads.

`entries` says which items, `sides` what an index is told of them, `carried` keeps what came by sync, `saved_queries`
compares answers before and after, `stage` builds. This folder is not about how an index is stored (`index`), searched
(`search`), or kept up to date (`syncing`).
"""
