"""Prints the results of a benchmark as they come, and keeps them for a file that ``bench compare`` reads."""

from __future__ import annotations

import platform
import time
from pathlib import Path

import msgspec
from bench.rig.load import Result


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One figure: how often per second, at which cost, or how much."""

    what: str
    rate: float | None = None  # per second
    cpu: float | None = None  # µs of the server's CPU time each
    megabytes: float | None = None
    seconds: float | None = None


class Results(msgspec.Struct):
    """One run of one benchmark."""

    benchmark: str
    of: str
    date: str
    machine: str
    lines: list[Line] = []


class Report:
    """The figures of one run."""

    def __init__(self, benchmark: str, of: str) -> None:
        machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
        self._results = Results(benchmark, of, time.strftime("%Y-%m-%d"), machine)

    def show(self, what: str, result: Result, base: Result | None = None) -> None:
        cpu = f"{result.cpu:7.0f} µs CPU" if result.cpu is not None else " " * 14
        ratio = f"   {result.rate / base.rate:5.2f} of the ceiling" if base else ""
        print(f"  {what:<28} {result.rate:9.0f}/s {cpu}{ratio}", flush=True)
        self._results.lines.append(Line(what, result.rate, result.cpu))

    def memory(self, what: str, megabytes: float) -> None:
        print(f"  {what:<28} {megabytes:9.0f} MB", flush=True)
        self._results.lines.append(Line(what, megabytes=megabytes))

    def seconds(self, what: str, seconds: float) -> None:
        print(f"  {what:<28} {seconds:9.2f} s", flush=True)
        self._results.lines.append(Line(what, seconds=seconds))

    def save(self, file: str) -> None:
        Path(file).write_bytes(msgspec.json.format(msgspec.json.encode(self._results)) + b"\n")
