"""The query graph: operators, the arcs between them, and the strategy that picks the next one to run."""

from windrow.graph.graph import Graph, Node
from windrow.graph.strategies import DepthFirst, Strategy

__all__ = ["DepthFirst", "Graph", "Node", "Strategy"]
