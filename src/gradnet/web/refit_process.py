"""A process that fits a collection anew, so that the one that answers stays small and quick."""

from __future__ import annotations

import sys

from gradnet.collection.collection import load
from gradnet.web.child import run


def main() -> None:
    """Refit the collection named on the command line."""
    from gradnet.methods.refit import refit  # imports torch

    run(lambda listener: refit(load(sys.argv[1]), listener=listener))


if __name__ == "__main__":
    main()
