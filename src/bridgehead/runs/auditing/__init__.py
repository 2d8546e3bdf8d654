"""The audits of a run: which apply, with what of the run they are fed, and the stage that runs them (`audit.json`).

`registry` lists them; the other files hand each what it looks at. How a claim is judged is in `bridgehead.audits`.
"""
