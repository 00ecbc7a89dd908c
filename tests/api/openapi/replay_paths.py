"""The replay's own way to look into documents (``resources[name=pods].verbs``), so that tests mean what it means."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType


def _load() -> ModuleType:
    path = Path(__file__).parents[2] / "conformance" / "replay_api.py"
    spec = importlib.util.spec_from_file_location("replay_api", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_replay = _load()
lookup = _replay.lookup
remove = _replay.remove
