"""The folders of the tests mirror the packages: the test of ``api/http/url.py`` is in ``tests/api/http``."""

from __future__ import annotations

from pathlib import Path

import pytest

import seamark

TESTS = Path(__file__).parent
SOURCE = Path(seamark.__file__).parent
MOST_MODULES = 20
# Folders that belong to no package: recordings, manifests, fuzzing, and tests of a whole Seamark.
APART = {"conformance", "deploy", "fuzz", "journeys", "robustness"}

FOLDERS = sorted({file.parent.relative_to(TESTS) for file in TESTS.rglob("*.py")})
MIRRORS = [folder for folder in FOLDERS if folder.parts and folder.parts[0] not in APART]


@pytest.mark.parametrize("folder", MIRRORS, ids=str)
def test_a_folder_of_tests_mirrors_a_package(folder: Path) -> None:
    assert (SOURCE / folder / "__init__.py").exists()


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_a_folder_of_tests_is_small(folder: Path) -> None:
    assert len(list((TESTS / folder).glob("*.py"))) <= MOST_MODULES


def test_modules_have_names_of_their_own() -> None:
    """pytest imports each by its bare name."""
    names = [file.stem for file in TESTS.rglob("*.py") if file.stem != "conftest"]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
