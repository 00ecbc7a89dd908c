"""Two runs of a benchmark side by side: ``python -m bench compare A.json B.json``, made by ``--json FILE``.

The last column is B divided by A: of the CPU time, memory or seconds where both have them, else of the time each takes.
Less than 1 means that B is cheaper.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec
from bench.rig.report import Line, Results


def ratio(a: Line, b: Line) -> float | None:
    """How many times as expensive ``b`` is."""
    if a.cpu and b.cpu:
        return b.cpu / a.cpu
    if a.megabytes and b.megabytes:
        return b.megabytes / a.megabytes
    if a.seconds and b.seconds:
        return b.seconds / a.seconds
    return a.rate / b.rate if a.rate and b.rate else None


def cell(line: Line | None) -> str:
    if line is None:
        return "–"
    if line.megabytes is not None:
        return f"{line.megabytes:,.0f} MB"
    if line.seconds is not None:
        return f"{line.seconds:,.2f} s"
    cpu = f", {line.cpu:,.0f} µs" if line.cpu is not None else ""
    return f"{line.rate or 0:,.0f}/s{cpu}"


def table(a: Results, b: Results) -> list[str]:
    """The rows to print; a figure that only one run has is shown without a ratio."""
    theirs = {line.what: line for line in b.lines}
    names = list(dict.fromkeys([line.what for line in a.lines] + [line.what for line in b.lines]))
    ours = {line.what: line for line in a.lines}
    rows = [("", f"A: {a.of}", f"B: {b.of}", "B / A")]
    for name in names:
        left, right = ours.get(name), theirs.get(name)
        times = ratio(left, right) if left and right else None
        rows.append((name, cell(left), cell(right), "–" if times is None else f"{times:.2f} ×"))
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def read(file: str) -> Results:
    try:
        return msgspec.json.decode(Path(file).read_bytes(), type=Results)
    except OSError as error:
        sys.exit(f"bench compare: cannot read {file}: {error.strerror}")
    except msgspec.DecodeError as error:
        sys.exit(f"bench compare: {file} is not a file that --json made: {error}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("a", metavar="A.json")
    parser.add_argument("b", metavar="B.json")
    options = parser.parse_args()
    print("\n".join(table(read(options.a), read(options.b))))
    return 0
