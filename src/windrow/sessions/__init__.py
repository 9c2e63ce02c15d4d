"""Sessions: named streams, and continuous queries over them that come and go."""

from windrow.sessions.session import QueryInfo, Session

__all__ = ["QueryInfo", "Session"]
