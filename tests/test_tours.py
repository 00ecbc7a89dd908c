"""The docstring of each package is a tour: it names every module and sub-package in it, and nothing else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import seamark

ROOT = Path(seamark.__file__).parent
PACKAGES = sorted(file.parent for file in ROOT.rglob("__init__.py"))
MOST_MODULES = 20

# An entry of a tour: a line such as "- ``name``: what it does", or a row of several names, "- ``one``, ``two``: …".
ENTRY = re.compile(r"^ *- (``\w+``(?:(?:,| and) ``\w+``)*)", re.MULTILINE)
NAME = re.compile(r"``(\w+)``")


def tour(package: Path) -> str:
    return ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""


def parts(package: Path) -> set[str]:
    """The modules and sub-packages directly in a package."""
    modules = {file.stem for file in package.glob("*.py")} - {"__init__", "__main__"}
    return modules | {folder.name for folder in package.iterdir() if (folder / "__init__.py").exists()}


def called(package: Path) -> str:
    return ".".join(package.relative_to(ROOT.parent).parts)


@pytest.mark.parametrize("package", PACKAGES, ids=called)
def test_a_tour_names_every_module(package: Path) -> None:
    assert sorted(parts(package) - set(NAME.findall(tour(package)))) == []


@pytest.mark.parametrize("package", PACKAGES, ids=called)
def test_a_tour_names_only_modules_that_exist(package: Path) -> None:
    entries = {name for entry in ENTRY.findall(tour(package)) for name in NAME.findall(entry)}
    assert sorted(entries - parts(package)) == []


@pytest.mark.parametrize("package", PACKAGES, ids=called)
def test_a_package_is_small_enough_for_one_tour(package: Path) -> None:
    assert len([file for file in package.glob("*.py") if file.stem != "__init__"]) <= MOST_MODULES


def test_the_walks_of_the_architecture_name_files_that_exist() -> None:
    clone = ROOT.parents[1]
    text = (clone / "docs" / "architecture.md").read_text().partition("## Where a change goes")[2]
    named = re.findall(r"`((?:\w+/)+(?:\w+\.(?:py|md))?)`", text)
    assert len(named) > 40
    assert [name for name in named if not (clone / name).exists() and not (ROOT / name).exists()] == []
