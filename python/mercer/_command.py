"""The program ``mercer``. It starts without NumPy."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line of this process and return its exit code."""
    from mercer import _mercer

    return _mercer.main(["mercer", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
