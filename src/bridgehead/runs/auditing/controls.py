"""Controls: what is found where nothing could have been learnt.

This module is not about how a control is judged (`audits.shuffled` and its neighbours).
"""

from bridgehead.audits import Finding
from bridgehead.runs.auditing.registry import NotApplicable
from bridgehead.runs.evaluating import stored_control
from bridgehead.runs.work import Work


def shuffled_links(work: Work) -> list[Finding]:
    """Judge the control that the stage evaluate trained on shuffled links."""
    control = stored_control(work.run)
    if control is None:
        raise NotApplicable("evaluate.shuffled = 0: no control was trained")
    return list(control.findings)
