"""How many examples random tests draw, as tests/README.md says."""

import os

# How many times the examples that a test declares are drawn: less than once, always the same, in ``make test``; many
# times, and others each time, in ``make soak``.
EXAMPLES = float(os.environ.get("WINDROW_EXAMPLES", "0.2"))
