"""A note of which Pods were worked out, among many that differ in little."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from seamark.kinds.pod.pod import PodKind


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """Notes the names of the Pods for which a method of their kind is called."""

    def note(method: str) -> list[str]:
        names: list[str] = []
        original = getattr(PodKind, method)

        def noting(self: PodKind, obj: Any, *others: Any) -> Any:
            names.append(obj["metadata"]["name"])
            return original(self, obj, *others)

        monkeypatch.setattr(PodKind, method, noting)
        return names

    return note
