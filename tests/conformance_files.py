"""The recordings of a real Kubernetes (``tests/conformance``), and the replay tools beside them as modules."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

CONFORMANCE = Path(__file__).parent / "conformance"
API = CONFORMANCE / "api"


def tool(name: str) -> ModuleType:
    """``replay_api.py`` and its like: tests that use their functions compare as the replay compares."""
    spec = importlib.util.spec_from_file_location(name, CONFORMANCE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
