"""Why a query has no output, or not all of it: a chain of rules over a report. One file for what rules look at, one for
the rules, one for what is shown.
"""

from windrow.hosts.why.answer import Why, why
from windrow.hosts.why.case import Cause
from windrow.hosts.why.causes import CAUSES

__all__ = ["CAUSES", "Cause", "Why", "why"]
