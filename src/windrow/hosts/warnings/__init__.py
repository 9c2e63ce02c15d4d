"""Warnings: what a plan, a sample of the rows, or a running query shows that its user has probably not meant.

Each rule is a function in a file of its own, from what is looked at to warnings. Rules see what is in reports, and no
clock: for the same reports they say the same. ``why`` says what a query waits for; a warning says what to change.
Where both find the same cause, it is the same function.
"""

from windrow.hosts.warnings.planned import planned
from windrow.hosts.warnings.warned import Looked, Rule, Warned
from windrow.hosts.warnings.watching import RULES, Watching, warned

__all__ = ["RULES", "Looked", "Rule", "Warned", "Watching", "planned", "warned"]
