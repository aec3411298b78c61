"""`python -m gradnet` is the command line."""

from gradnet.cli import main

main()
