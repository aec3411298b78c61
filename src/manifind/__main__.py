"""`python -m manifind` is the command line."""

from manifind.cli import main

main()
