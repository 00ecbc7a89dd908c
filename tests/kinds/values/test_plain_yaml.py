"""The plain YAML of kubeconfig files, beside a YAML library."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from seamark.access.kubeconfig_file import _any_yaml
from seamark.kinds.values.plain_yaml import NotPlain, plain

KIND = """\
apiVersion: v1
# a comment
clusters:
- cluster:
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==
    server: https://127.0.0.1:36413

  name: kind-kind
contexts:
  - context:
      cluster: kind-kind
      user: kind-kind
    name: kind-kind
current-context: "kind-kind"
kind: Config
preferences: {}
users:
-   name: kind-kind
    user:
      exec:
        args:
        - eks
        - --region
        - 'eu-west-1'
        env: null
        provideClusterInfo: false
      token:
      password: 0123
"""


def test_a_usual_kubeconfig_is_plain():
    assert plain(KIND) == _any_yaml(KIND)
    assert plain(KIND)["users"][0]["user"]["exec"]["args"] == ["eks", "--region", "eu-west-1"]
    assert plain(KIND)["users"][0]["user"]["password"] == "0123"


@pytest.mark.parametrize(
    "text",
    [
        "a: {b: c}",
        "a: [b]",
        "a: |\n  text\n",
        "a: b # why",
        "a: &x b\nc: *x",
        "--- \na: b",
        "a: b\n  c",
        'a: "x\\n"',
        "a: 'it''s'",
        "a: b: c",
        "a: b:: c",
        "a: b:",
        "a\n",
        "a: b\na: c",
        "- - a",
        "-\n  a: b",
        "a: !!str 1",
        "\ta: b",
        "a:\n    b: c\n  d: e",
        "yes: a",
    ],
)
def test_anything_else_is_left_to_the_library(text):
    with pytest.raises(NotPlain):
        plain(text)


WORDS = st.text(st.sampled_from("aB0 -_:./#'\"{}[],&*!|>%@`~=yesno\n\t"), max_size=12)
VALUES = st.recursive(
    WORDS | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, st.sampled_from([None, "'", '"']), st.booleans())
def test_what_is_read_is_what_the_library_reads(value, style, indented):
    text = yaml.safe_dump(value, default_style=style, default_flow_style=False, indent=4 if indented else 2)
    agree(text)


@given(
    st.lists(st.sampled_from(["a:", "- ", "  ", "b", ": ", "c: d", "\n", "'", '"', "#", "no", "~", "1"]), max_size=14)
)
def test_no_text_is_read_otherwise(pieces):
    agree("".join(pieces))


def agree(text: str) -> None:
    try:
        found = plain(text)
    except NotPlain:
        return
    assert found == _any_yaml(text)
