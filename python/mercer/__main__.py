"""``python -m mercer`` is the program ``mercer``."""

import sys

from mercer._command import main

if __name__ == "__main__":
    sys.exit(main())
