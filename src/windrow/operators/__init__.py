"""Operators: the only place where algorithms live. One file each; all share the interface of ``operator.py``."""

from windrow.operators.joins.in_order_join import InOrderJoin
from windrow.operators.joins.limited_join import LimitedJoin
from windrow.operators.joins.lookup import Lookup
from windrow.operators.joins.multi_join import MultiJoin
from windrow.operators.joins.opib_join import OpibJoin
from windrow.operators.joins.opob_join import OpobJoin
from windrow.operators.joins.window_join import WindowJoin
from windrow.operators.operator import Item, Operator, Side, Wait
from windrow.operators.progress.admit import Admit
from windrow.operators.progress.audit import Audit
from windrow.operators.progress.clock import WallClock
from windrow.operators.progress.everyone import Everyone
from windrow.operators.progress.generate import Asking, Generate, Judge, Witness
from windrow.operators.progress.last_instant import LastInstant
from windrow.operators.progress.meld import Meld
from windrow.operators.progress.punctuate import Punctuate
from windrow.operators.progress.retime import Retime
from windrow.operators.progress.shift import Shift
from windrow.operators.ring.ring import Ring
from windrow.operators.rows.apply import Apply
from windrow.operators.rows.decode import Decode
from windrow.operators.rows.dupelim import DupElim, Unique
from windrow.operators.rows.fused import Fused
from windrow.operators.rows.lift import Lift
from windrow.operators.rows.project import Project
from windrow.operators.rows.retract import Retract
from windrow.operators.rows.select import Select
from windrow.operators.rows.sort import Merge, Sort
from windrow.operators.rows.split import Split
from windrow.operators.rows.top import Top
from windrow.operators.rows.with_keys import WithKeys
from windrow.operators.sequences.as_of_join import AsOfJoin
from windrow.operators.sequences.matcher import Matcher
from windrow.operators.windows.adaptpaned import AdaptPaned
from windrow.operators.windows.adaptwid import AdaptWid
from windrow.operators.windows.bins import Bins
from windrow.operators.windows.bucket import Bucket
from windrow.operators.windows.buffering import Buffering
from windrow.operators.windows.fixed_table import FixedTable
from windrow.operators.windows.gate import Gate
from windrow.operators.windows.instants import Instants
from windrow.operators.windows.landmark import Running
from windrow.operators.windows.pair_aggregate import PairAggregate
from windrow.operators.windows.pairs import Pairs
from windrow.operators.windows.paned import Paned
from windrow.operators.windows.paned_rows import PanedRows
from windrow.operators.windows.panes import Panes
from windrow.operators.windows.partitioned import PartitionedRows
from windrow.operators.windows.session import Sessions
from windrow.operators.windows.shared import SharedPanes
from windrow.operators.windows.slide_by_tuple import SlidByTuple
from windrow.operators.windows.slide_by_tuple_buffering import BufferedByTuple
from windrow.operators.windows.wid import Wid
from windrow.operators.windows.windowing import Windowing
from windrow.spec.batches import Batch
from windrow.spec.options import PLAIN, Options

__all__ = [
    "PLAIN",
    "AdaptPaned",
    "AdaptWid",
    "Admit",
    "Apply",
    "AsOfJoin",
    "Asking",
    "Audit",
    "Batch",
    "Bins",
    "Bucket",
    "BufferedByTuple",
    "Buffering",
    "Decode",
    "DupElim",
    "Everyone",
    "FixedTable",
    "Fused",
    "Gate",
    "Generate",
    "InOrderJoin",
    "Instants",
    "Item",
    "Judge",
    "LastInstant",
    "Lift",
    "LimitedJoin",
    "Lookup",
    "Matcher",
    "Meld",
    "Merge",
    "MultiJoin",
    "Operator",
    "OpibJoin",
    "OpobJoin",
    "Options",
    "PairAggregate",
    "Pairs",
    "Paned",
    "PanedRows",
    "Panes",
    "PartitionedRows",
    "Project",
    "Punctuate",
    "Retime",
    "Retract",
    "Ring",
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
    "Wait",
    "WallClock",
    "Wid",
    "WindowJoin",
    "Windowing",
    "WithKeys",
    "Witness",
]
