"""A session behind HTTP: the server of ``windrow serve``, and what its clients need to find and ask it."""
