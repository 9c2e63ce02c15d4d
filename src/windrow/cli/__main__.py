"""``python -m windrow.cli``."""

from windrow.cli import main

main()
