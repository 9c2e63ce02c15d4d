"""Watching: one query while it runs, so that each warning is given once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from windrow.hosts.report import Report
from windrow.hosts.warnings.clock_ahead import clock_ahead
from windrow.hosts.warnings.epoch_unit import epoch_unit
from windrow.hosts.warnings.every_row_late import every_row_late
from windrow.hosts.warnings.growing_state import growing_state
from windrow.hosts.warnings.long_window import long_window
from windrow.hosts.warnings.nothing_passes import nothing_passes
from windrow.hosts.warnings.one_window import one_window
from windrow.hosts.warnings.slack_of_zero import slack_of_zero
from windrow.hosts.warnings.time_zone import time_zone
from windrow.hosts.warnings.warned import Looked, Rule, Warned

MOST = 33  # reports that are remembered

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


def warned(looked: Looked) -> list[Warned]:
    """All that the rules find, each thing once."""
    found = [each for rule in RULES for each in rule(looked)]
    return list({each.key: each for each in found}.values())


@dataclass
class Watching:
    """``endless``: the names of the sources that have no end. ``said``: the keys of what has been said before."""

    endless: Iterable[str] = ()
    said: set[str] = field(default_factory=set)
    before: tuple[Report, ...] = ()

    def fresh(self, found: Iterable[Warned]) -> list[Warned]:
        """What has not been said yet of what was found before anything ran."""
        news = [each for each in found if each.key not in self.said]
        self.said |= {each.key for each in news}
        return news

    def news(self, report: Report, final: bool = False) -> list[Warned]:
        """What has not been said yet. Each report is given once, in order."""
        looked = Looked(report, self.before, frozenset(self.endless), final)
        if report.batch >= 0 and (not self.before or self.before[-1].batch < report.batch):
            self.before = thinned((*self.before, report))
        return self.fresh(warned(looked))


def thinned(reports: Sequence[Report]) -> tuple[Report, ...]:
    """At most ``MOST`` of them: every second one, and always the first and the last. So what is compared goes back to
    the start, however long that is ago.
    """
    return tuple(reports) if len(reports) <= MOST else (*reports[:-1:2], reports[-1])
