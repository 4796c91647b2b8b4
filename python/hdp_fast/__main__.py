"""Runs the command hdp-fast as `python -m hdp_fast`."""

import sys

from .cli.command_line import main

if __name__ == "__main__":
    sys.exit(main())
