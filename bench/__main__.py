"""``python -m bench [NAME] [OPTIONS…]``: one benchmark, or all of them with their defaults.

Every benchmark compares with a peer or a baseline within one run, because on a shared machine only ratios are reliable.
What several of them need (servers, load, peers, reports) is in :mod:`bench.rig`.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def names() -> list[str]:
    return sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))


def main() -> int:
    arguments = sys.argv[1:]
    if arguments and arguments[0] in names():
        sys.argv = [f"bench {arguments[0]}", *arguments[1:]]
        return int(importlib.import_module(f"bench.{arguments[0]}").main() or 0)
    if arguments:
        print(__doc__)
        print("benchmarks:", ", ".join(names()))
        return 0 if arguments[0] in ("-h", "--help") else 2
    worst = 0
    for name in (name for name in names() if name != "compare"):
        print(f"\n== {name}", flush=True)
        worst = max(worst, subprocess.call([sys.executable, "-m", "bench", name], cwd=HERE.parent))
    return worst


if __name__ == "__main__":
    sys.exit(main())
