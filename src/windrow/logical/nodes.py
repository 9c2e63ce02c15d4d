"""Logical plans: what a query means. Fields, schema and questions; hosts and optimizers visit them."""

from windrow.logical.asked import columns_asked, columns_read
from windrow.logical.asof import AS_OF_HOWS, STRATEGIES, AsOf, AsOfHow, Strategy
from windrow.logical.join import EARLIER, FIRST, HOWS, LATER, LEFT, RIGHT, UNMATCHED, How, Join
from windrow.logical.kinds import OnRows, SameRows
from windrow.logical.lookup import LOOKUPS, Lookup, Lookups
from windrow.logical.multi_join import WAYS, MultiJoin
from windrow.logical.node import Node, before, progressing
from windrow.logical.pairs import PairAggregate, both_times
from windrow.logical.rows import Apply, Distinct, Filter, Ordered, Project, Split, Union
from windrow.logical.sequence import MATCHINGS, OF_STEP, SKIPS, Compared, Matching, Measure, SeqStep, Sequence, Skip
from windrow.logical.source import Progress, Scan, Statistics
from windrow.logical.windowed import (
    OF_ROWS,
    AggregateCall,
    Shape,
    Together,
    Top,
    WindowAggregate,
    aggregate_type,
    window_time,
)
from windrow.windows.pairing import Side

PROGRESSING = "a timestamp, date or integer"

__all__ = [
    "AS_OF_HOWS",
    "EARLIER",
    "FIRST",
    "HOWS",
    "LATER",
    "LEFT",
    "LOOKUPS",
    "MATCHINGS",
    "OF_ROWS",
    "OF_STEP",
    "PROGRESSING",
    "RIGHT",
    "SKIPS",
    "STRATEGIES",
    "UNMATCHED",
    "WAYS",
    "AggregateCall",
    "Apply",
    "AsOf",
    "AsOfHow",
    "Compared",
    "Distinct",
    "Filter",
    "How",
    "Join",
    "Lookup",
    "Lookups",
    "Matching",
    "Measure",
    "MultiJoin",
    "Node",
    "OnRows",
    "Ordered",
    "PairAggregate",
    "Progress",
    "Project",
    "SameRows",
    "Scan",
    "SeqStep",
    "Sequence",
    "Shape",
    "Side",
    "Skip",
    "Split",
    "Statistics",
    "Strategy",
    "Together",
    "Top",
    "Union",
    "WindowAggregate",
    "aggregate_type",
    "before",
    "both_times",
    "columns_asked",
    "columns_read",
    "progressing",
    "window_time",
]
