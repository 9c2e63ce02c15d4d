"""Operators: the only place where algorithms live. One file each; all share the interface of ``operator.py``."""

from windrow.operators.admit import Admit
from windrow.operators.bucket import Bucket
from windrow.operators.meld import Meld
from windrow.operators.operator import Batch, Item, Operator, Side
from windrow.operators.paned import Paned
from windrow.operators.panes import Panes
from windrow.operators.project import Project
from windrow.operators.punctuate import Punctuate
from windrow.operators.select import Select
from windrow.operators.wid import Wid

__all__ = [
    "Admit",
    "Batch",
    "Bucket",
    "Item",
    "Meld",
    "Operator",
    "Paned",
    "Panes",
    "Project",
    "Punctuate",
    "Select",
    "Side",
    "Wid",
]
