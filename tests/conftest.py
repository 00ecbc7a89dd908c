"""What every test can use.  Keep it small: fixtures of one package belong into that package's own conftest."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Soak tests run only when asked for by name, as `make soak` does."""
    if "soak" in config.option.markexpr:
        return
    soaking = [item for item in items if item.get_closest_marker("soak")]
    if soaking:
        items[:] = [item for item in items if item not in soaking]
        config.hook.pytest_deselected(items=soaking)
