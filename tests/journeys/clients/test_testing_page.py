"""Every example in docs/testing.md and the README is run, each by a pytest of its own."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from test_pytest_plugin import run_pytest

ROOT = Path(__file__).parents[3]
CLIENTS = ("kopf", "kr8s", "kubernetes", "kubernetes_asyncio", "lightkube")


def examples() -> list[pytest.ParameterSet]:
    found = []
    for page in ("docs/testing.md", "README.md"):
        heading = page
        parts = re.split(r"^(#+ .*)$", (ROOT / page).read_text(), flags=re.MULTILINE)
        for heading, text in zip(parts[1::2], parts[2::2], strict=True):
            for number, code in enumerate(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)):
                found.append(pytest.param(code, id=f"{page} {heading.strip('# ')} {number}"))
    return found


@pytest.mark.parametrize("code", examples())
def test_an_example_works(code: str, tmp_path: Path) -> None:
    for client in CLIENTS:
        if re.search(rf"^(import|from) {client}\b", code, re.MULTILINE) and importlib.util.find_spec(client) is None:
            pytest.skip(f"there is no {client} here")
    (tmp_path / "test_example.py").write_text(code)
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d passed", done.stdout)


def test_there_are_examples() -> None:
    assert len(examples()) > 10
