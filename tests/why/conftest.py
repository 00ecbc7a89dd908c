"""The controllers' tests have a cluster in memory and a way to let the controllers work on it; they serve here, too."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "controllers"))
