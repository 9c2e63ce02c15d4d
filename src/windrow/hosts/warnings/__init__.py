"""Warnings: what a plan, a sample of the rows, or a running query shows that its user has probably not meant.

Each rule is a function of one file, from what is looked at to warnings. Rules see what is in a plan and in reports, and
no clock: for the same reports they say the same. ``why`` says what a query waits for; a warning says what to change.
"""

from windrow.hosts.warnings.clock_ahead import clock_ahead
from windrow.hosts.warnings.epoch_unit import epoch_unit
from windrow.hosts.warnings.every_row_late import every_row_late
from windrow.hosts.warnings.growing_state import growing_state
from windrow.hosts.warnings.long_window import long_window
from windrow.hosts.warnings.nothing_passes import nothing_passes
from windrow.hosts.warnings.one_window import one_window
from windrow.hosts.warnings.planned import planned
from windrow.hosts.warnings.slack_of_zero import slack_of_zero
from windrow.hosts.warnings.time_zone import time_zone
from windrow.hosts.warnings.warned import Looked, Rule, Warned
from windrow.hosts.warnings.watching import Watching, warned

__all__ = ["RULES", "Looked", "Rule", "Warned", "Watching", "planned", "warned"]

# In the order in which they are shown. The first three can say something before anything has run.
RULES: tuple[Rule, ...] = (
    slack_of_zero,
    epoch_unit,
    one_window,
    long_window,
    every_row_late,
    nothing_passes,
    clock_ahead,
    time_zone,
    growing_state,
)
