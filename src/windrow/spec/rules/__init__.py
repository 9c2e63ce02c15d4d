"""Rules by which promises are made from what has arrived so far, one file each."""

from windrow.spec.rules.asked import ASKED, Answer, Asked, answers
from windrow.spec.rules.by_function import ByFunction, Seen
from windrow.spec.rules.by_source import BySource
from windrow.spec.rules.estimated import Estimated
from windrow.spec.rules.row_slack import RowSlack
from windrow.spec.rules.rule import Rule

__all__ = ["ASKED", "Answer", "Asked", "ByFunction", "BySource", "Estimated", "RowSlack", "Rule", "Seen", "answers"]
