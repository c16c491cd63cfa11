"""``python -m tests.promises``: what to put into the tables and what to take out."""

import sys

from .table import report

if __name__ == "__main__":
    text = report()
    print(text or "the tables fit the text")
    sys.exit(bool(text))
