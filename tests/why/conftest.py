"""The controllers' tests have a cluster in memory, and the rules' tests have random worlds; both are used here, too."""

import sys
from pathlib import Path

for folder in ("controllers", "rules"):
    sys.path.append(str(Path(__file__).parents[1] / folder))
