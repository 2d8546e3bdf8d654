"""What an audit raises that has nothing to look at in a run. This module is not about which audits there are."""


class NotApplicable(Exception):
    """An audit has nothing to look at in this run; the message says what it would need."""
