"""What every check of this package raises."""


class Mismatch(AssertionError):  # noqa: N818 (it reads as what it is)
    """A run gave something else than it should; the message shows what, and the seed that repeats it."""
