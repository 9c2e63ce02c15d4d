"""The query graph: operators, the buffers between them, and the rules that pick the next one to run."""

from windrow.graph.buffers import Memory
from windrow.graph.chain import Segment, place
from windrow.graph.cycle import Output, Traffic
from windrow.graph.enhanced import Arc
from windrow.graph.graph import Graph
from windrow.graph.states import Node
from windrow.graph.strategies import BFS, DFS, RR, Kind, Rule, Strategy, batching, named
from windrow.graph.table import Row, Table
from windrow.graph.timestamps import Timestamps

__all__ = [
    "BFS",
    "DFS",
    "RR",
    "Arc",
    "Graph",
    "Kind",
    "Memory",
    "Node",
    "Output",
    "Row",
    "Rule",
    "Segment",
    "Strategy",
    "Table",
    "Timestamps",
    "Traffic",
    "batching",
    "named",
    "place",
]
