"""``python -m seamark``."""

import sys

from seamark.cli import main

sys.exit(main())
