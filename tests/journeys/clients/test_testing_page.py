"""Every example in docs/testing.md and the README is run, all by one pytest, each as a file of its own."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from pytest_runs import run_pytest

ROOT = Path(__file__).parents[3]
CLIENTS = ("kopf", "kr8s", "kubernetes", "kubernetes_asyncio", "lightkube")


def examples() -> list[tuple[str, str]]:
    """Where each example stands, and its code."""
    found = []
    for page in ("docs/testing.md", "README.md"):
        heading = page
        parts = re.split(r"^(#+ .*)$", (ROOT / page).read_text(), flags=re.MULTILINE)
        for heading, text in zip(parts[1::2], parts[2::2], strict=True):
            for number, code in enumerate(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)):
                found.append((f"{page} {heading.strip('# ')} {number}", code))
    return found


def missing_client(code: str) -> str:
    """A client that the example needs and that is not installed; "" if there is none."""
    for client in CLIENTS:
        if re.search(rf"^(import|from) {client}\b", code, re.MULTILINE) and importlib.util.find_spec(client) is None:
            return client
    return ""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, set[tuple[str, str]]]:
    """What pytest printed, and the outcomes of the tests of each example."""
    folder = tmp_path_factory.mktemp("examples")
    for number, (_, code) in enumerate(examples()):
        if not missing_client(code):
            (folder / f"test_example_{number}.py").write_text(code)
    done = run_pytest(folder)
    return done.stdout + done.stderr, set(re.findall(r"^([A-Z]+) (test_example_\d+)\.py", done.stdout, re.MULTILINE))


@pytest.mark.parametrize("number", [pytest.param(number, id=name) for number, (name, _) in enumerate(examples())])
def test_an_example_works(number: int, ran: tuple[str, set[tuple[str, str]]]) -> None:
    if client := missing_client(examples()[number][1]):
        pytest.skip(f"there is no {client} here")
    printed, told = ran
    outcomes = {outcome for outcome, file in told if file == f"test_example_{number}"}
    assert outcomes == {"PASSED"}, printed


def test_there_are_examples() -> None:
    assert len(examples()) > 10
