"""The page about ``why`` lists every reason code with what it says."""

from pathlib import Path

from seamark.why.codes import Code

PAGE = Path(__file__).parents[2] / "docs" / "why.md"


def test_every_code_is_on_the_page():
    rows = {line for line in PAGE.read_text().splitlines() if line.startswith("| `")}
    listed = {line for line in rows if line.split("`")[1][0].isupper()}
    assert listed == {f"| `{code.value}` | {code.about} |" for code in Code}
