"""Operators: the only place where algorithms live. One file each; all share the interface of ``operator.py``."""

from windrow.operators.adaptpaned import AdaptPaned
from windrow.operators.adaptwid import AdaptWid
from windrow.operators.admit import Admit
from windrow.operators.apply import Apply
from windrow.operators.audit import Audit
from windrow.operators.bins import Bins
from windrow.operators.bucket import Bucket
from windrow.operators.buffering import Buffering
from windrow.operators.clock import WallClock
from windrow.operators.describe import Describe
from windrow.operators.dupelim import DupElim, Unique
from windrow.operators.everyone import Everyone
from windrow.operators.gate import Gate
from windrow.operators.generate import Generate, Judge, Witness
from windrow.operators.instants import Instants
from windrow.operators.landmark import Running
from windrow.operators.last_instant import LastInstant
from windrow.operators.lift import Lift
from windrow.operators.meld import Meld
from windrow.operators.operator import Batch, Item, Operator, Side
from windrow.operators.options import PLAIN, Options
from windrow.operators.paned import Paned
from windrow.operators.panes import Panes
from windrow.operators.partitioned import PartitionedRows
from windrow.operators.project import Project
from windrow.operators.punctuate import Punctuate
from windrow.operators.retime import Retime
from windrow.operators.retract import Retract
from windrow.operators.select import Select
from windrow.operators.session import Sessions
from windrow.operators.shared import SharedPanes
from windrow.operators.shift import Shift
from windrow.operators.slide_by_tuple import SlidByTuple
from windrow.operators.slide_by_tuple_buffering import BufferedByTuple
from windrow.operators.sort import Merge, Sort
from windrow.operators.split import Split
from windrow.operators.table import FixedTable
from windrow.operators.top import Top
from windrow.operators.wid import Wid

__all__ = [
    "PLAIN",
    "AdaptPaned",
    "AdaptWid",
    "Admit",
    "Apply",
    "Audit",
    "Batch",
    "Bins",
    "Bucket",
    "BufferedByTuple",
    "Buffering",
    "Describe",
    "DupElim",
    "Everyone",
    "FixedTable",
    "Gate",
    "Generate",
    "Instants",
    "Item",
    "Judge",
    "LastInstant",
    "Lift",
    "Meld",
    "Merge",
    "Operator",
    "Options",
    "Paned",
    "Panes",
    "PartitionedRows",
    "Project",
    "Punctuate",
    "Retime",
    "Retract",
    "Running",
    "Select",
    "Sessions",
    "SharedPanes",
    "Shift",
    "Side",
    "SlidByTuple",
    "Sort",
    "Split",
    "Top",
    "Unique",
    "WallClock",
    "Wid",
    "Witness",
]
