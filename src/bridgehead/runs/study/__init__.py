"""The two-view study: a published protocol repeated with our own parts, and three exercises that it leaves to readers.

`two_views` is what users call. This folder is not about the data, draws and settings of the study (`runs.two_view`),
nor about how its page looks (`report.study_page`).
"""
