"""``python -m dra_core``: the command line."""

import sys

from dra_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
