"""The recordings of a real Kubernetes (``tests/conformance``), and the replay tools beside them as modules."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

CONFORMANCE = Path(__file__).parent / "conformance"
API = CONFORMANCE / "api"


# Cases that are not played yet, and why.
UNPLAYED: dict[str, str] = {}


def tool(name: str) -> ModuleType:
    """``replay_api.py`` and its like: tests that use their functions compare as the replay compares."""
    spec = importlib.util.spec_from_file_location(name, CONFORMANCE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def playable(files: Iterable[Path], folder: Path) -> list[str]:
    """The files, of which those with unplayed cases are copied into the folder without these."""
    found = []
    for file in sorted(files):
        recording = json.loads(file.read_text())
        cases = recording.get("cases", ())
        kept = [case for case in cases if case["name"] not in UNPLAYED]
        if len(kept) != len(cases):
            file = folder / file.name
            file.write_text(json.dumps({**recording, "cases": kept}))
        found.append(str(file))
    return found
