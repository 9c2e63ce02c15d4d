"""Window types as pure functions: ``windows``, ``extent`` and ``wids`` (Li, thesis chapter 5).

``extent`` is the definition and ``wids`` is derived from it: ``t in extent(w)`` iff ``w in wids(t)``.
Nothing here knows batches, operators or Spark; it is also what the oracle runs on.
"""

from windrow.windows.landmark import Landmark
from windrow.windows.partitioned import Partitioned
from windrow.windows.row_sliding import RowSliding
from windrow.windows.session import Session
from windrow.windows.slide_by_tuple import SlideByTuple
from windrow.windows.sliding import Sliding
from windrow.windows.tuples import Tuple, Window

__all__ = ["Landmark", "Partitioned", "RowSliding", "Session", "SlideByTuple", "Sliding", "Tuple", "Window"]
