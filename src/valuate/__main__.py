"""``python -m valuate``."""

from valuate.cli import main

main()
