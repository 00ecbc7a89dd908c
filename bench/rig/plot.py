"""Curves as an SVG picture, drawn without a library, and how much a curve grows."""

from __future__ import annotations

import statistics
from html import escape

import msgspec

WIDTH, HEIGHT, LEFT, GAP = 760, 110, 60, 44


class Curve(msgspec.Struct, frozen=True):
    """One quantity over time."""

    name: str
    x: list[float]
    y: list[float]


def growth(curve: Curve) -> float:
    """Per cent per hour by which the second half of a curve grows: its slope over its mean.

    The slope is the median of those between all points of the first and the last third (Theil and Sen's way), so that
    single peaks do not count.
    """
    half = len(curve.x) // 2
    x, y = curve.x[half:], curve.y[half:]
    third = max(1, len(x) // 3)
    slopes = [(y[b] - y[a]) / (x[b] - x[a]) for a in range(third) for b in range(len(x) - third, len(x)) if x[b] > x[a]]
    mean = statistics.fmean(y) if y else 0.0
    return statistics.median(slopes) * 60 / mean * 100 if slopes and mean else 0.0


def plot(curves: list[Curve], unit: str) -> str:
    """The curves below each other, each from zero, over one time axis."""
    total = GAP + len(curves) * (HEIGHT + GAP)
    end = max(curve.x[-1] for curve in curves)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {total}"'
        ' font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for number, curve in enumerate(curves):
        top, most = GAP + number * (HEIGHT + GAP), max(*curve.y, 1.0) * 1.1
        points = " ".join(
            f"{LEFT + x / end * WIDTH:.1f},{top + HEIGHT - y / most * HEIGHT:.1f}"
            for x, y in zip(curve.x, curve.y, strict=True)
        )
        parts.append(f'<text x="{LEFT}" y="{top - 8}" font-weight="bold">{escape(curve.name)}</text>')
        for share in (0.0, 0.5, 1.0):
            y = top + HEIGHT - share * HEIGHT / 1.1
            parts.append(f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="#dddddd"/>')
            parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{share * most / 1.1:,.0f}</text>')
        parts.append(f'<polyline points="{points}" fill="none" stroke="#1f5fa8" stroke-width="1.5"/>')
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, text = LEFT + share * WIDTH, f"{share * end:.0f}" + (f" {unit}" if share == 1 else "")
        anchor = "end" if share == 1 else "middle"
        parts.append(f'<text x="{x:.0f}" y="{total - GAP + 18}" text-anchor="{anchor}">{text}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
