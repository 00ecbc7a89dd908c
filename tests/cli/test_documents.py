"""Documents and help: what they tell people to type can be typed, and what they name is there."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from seamark.cli import VERBS
from seamark.nodes.simulated.pods import orders

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "deploy" / "README.md"]
_END = ("|", "||", "&&", ";", ">", "<<EOF")


def commands(text: str) -> Iterator[list[str]]:
    """The words of each ``seamark VERB …`` on a line of its own, without prompt, comment and what the shell does."""
    for line in text.splitlines():
        typed = re.match(r"\s*(?:\$ )?(?:\.venv/bin/)?seamark (.*)", line)
        if typed is None or "…" in line or "`" in line:
            continue
        lexer = shlex.shlex(typed[1], posix=True, punctuation_chars=";|&")
        lexer.whitespace_split = True
        words = list(lexer)
        end = next((position for position, word in enumerate(words) if word in _END), len(words))
        yield words[:end]


def check(words: list[str]) -> None:
    verb, *arguments = words
    if verb in ("--help", "--version", "help", "VERB", "COMMAND"):
        return
    parser = importlib.import_module(VERBS[verb][0]).parser()
    try:
        parser.parse_intermixed_args(arguments)
    except SystemExit as ended:
        raise AssertionError(f"seamark {' '.join(words)} cannot be typed") from ended


@pytest.mark.parametrize("verb", VERBS)
def test_examples_can_be_typed(verb: str) -> None:
    examples = list(commands(importlib.import_module(VERBS[verb][0]).EXAMPLES))
    assert examples
    for words in examples:
        check(words)


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_says_what_it_does_and_its_default(verb: str) -> None:
    parser = importlib.import_module(VERBS[verb][0]).parser()
    told = parser.format_help()
    for option in parser._actions:  # argparse has no public way to ask a parser for its arguments
        if option.help is argparse.SUPPRESS:
            continue
        name = option.option_strings[0] if option.option_strings else str(option.metavar or option.dest)
        assert option.help, name
        section = re.search(rf"^  {re.escape(name)}(?!\w).*?(?=^  \S|^$)", told, re.MULTILINE | re.DOTALL)
        assert section is not None, name
        if isinstance(option.default, str | int | float) and option.default not in ("", False, argparse.SUPPRESS):
            assert "default" in section[0], name
        if option.default is True:
            assert f"{name}=false" in section[0] or f"--no-{name[2:]}" in section[0], name
        if "see above" in section[0]:
            assert f"{name}, $" in told.partition("options:")[0], name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_pages_can_be_typed(page: Path) -> None:
    for words in commands(page.read_text()):
        check(words)


def test_pages_have_commands() -> None:
    assert len([words for page in PAGES for words in commands(page.read_text())]) > 8


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link, heading in re.findall(r"\]\(((?!http)[^)#]*)(?:#([^)]+))?\)", page.read_text()):
        target = page.parent / link if link else page
        assert target.exists(), link
        if heading:
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", each).strip().lower().replace(" ", "-") for each in headings}
            assert heading in slugs, f"{link}#{heading}"


def test_every_annotation_is_described() -> None:
    _, (complaint,) = orders.parse({f"{orders.PREFIX}no-such": ""})
    known = complaint.partition("known are ")[2].split(", ")
    page = (ROOT / "docs" / "simulated-nodes.md").read_text()
    assert len(known) > 5
    for word in known:
        assert f"| `{orders.PREFIX}{word}` |" in page


def test_every_promise_about_security_names_a_test_that_exists() -> None:
    table = (ROOT / "docs" / "security.md").read_text().partition("| promise | test |")[2].strip().partition("\n\n")[0]
    rows = table.splitlines()[1:]
    assert len(rows) > 10
    for row in rows:
        named = re.search(r"`(tests/\S+?\.py)::(\w+)`", row)
        assert named is not None, row
        assert re.search(rf"^(async )?def {named[2]}\(", (ROOT / named[1]).read_text(), re.MULTILINE), row


def test_every_page_is_reached_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert f"docs/{page.name}" in readme, page.name


def test_links_and_pictures_of_the_readme_work_on_pypi() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    text = (ROOT / "README.md").read_text()
    for each in project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    assert not re.findall(r"\]\((?!https?://|#)[^)]*\)", text)
    home = project["project"]["urls"]["Homepage"]
    assert f"]({home}/blob/main/docs/why.md)" in text
    assert re.search(r"!\[[^]]+\]\(https://raw\.\S+/docs/picture\.svg\)", text)
    assert all(address.startswith(home) for address in project["project"]["urls"].values())
