"""``python -m mercer`` is the program ``mercer``."""

import sys

from mercer._command import main

sys.exit(main())
