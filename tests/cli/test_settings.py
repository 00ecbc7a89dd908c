"""``seamark config``: files that can be used again, and a reference of everything."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from seamark import sections
from seamark.cli import main
from seamark.cli.config import effective
from seamark.cli.reference import ABOUT, reference, settings
from seamark.cli.toml_text import toml_text
from seamark.config import Config, ConfigError, from_options

ROOT = Path(__file__).parents[2]


def config(**options: Any) -> Config:
    return from_options({"data_dir": "/d", **options}, environ={})


def written(text: str, tmp_path: Path) -> Config:
    (tmp_path / "seamark.toml").write_text(text)
    return from_options({"config": str(tmp_path / "seamark.toml")}, environ={})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"nodes": 7, "dns_port": 0, "ephemeral": True, "api_host": "::1"},
        {"service_range": "fd00:1::/112,10.1.0.0/16", "log_format": "json", "log_level": "debug"},
        {"store": "etcd://a:1,b:2/p", "cluster_domain": "k.example"},
    ],
)
def test_what_is_printed_can_be_used_and_printed_again(options: dict[str, Any], tmp_path: Path) -> None:
    first = config(**options)
    again = written(effective(first), tmp_path)
    assert effective(again) == effective(first)
    for section in sections.SECTIONS.values():
        assert section(again) == section(first)


def test_what_follows_from_other_settings_goes_on_following(tmp_path: Path) -> None:
    text = effective(config())
    moved = written(
        text.replace("dns_port = 1053", "dns_port = 53").replace('"cluster.local"', '"k.example"', 1), tmp_path
    )
    assert sections.dns(moved).listen == ("127.0.0.1:53",)
    assert sections.dns(moved).zone.zones[0] == "k.example"


def test_a_section_may_say_a_little(tmp_path: Path) -> None:
    made = written("[dns.zone]\nttl = 30\n[nodes]\ncount = 1\n", tmp_path)
    assert (sections.dns(made).zone.ttl, sections.dns(made).zone.pods) == (30, "verified")
    assert sections.nodes(made).count == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[dns]\nlisten = ['x:y']\n", r"\[dns\]"),
        ("[dns]\nzone = 3\n", r"\[dns\]"),
        ("[dns.zone]\nttl = -1\n", "ttl must be"),
        ("[nodes]\ncount = -1\n", r"\[nodes\]"),
        ("[nodes]\nnope = 1\n", "nope"),
        ("[discovery]\nbatch = -1\n", "batch"),
        ("[surroundings]\nkeep_events_seconds = 0\n", "keep_events_seconds"),
    ],
)
def test_a_wrong_section_is_named(text: str, said: str, tmp_path: Path) -> None:
    made = written(text, tmp_path)
    with pytest.raises(ConfigError, match=said):
        [section(made) for section in sections.SECTIONS.values()]


def test_every_setting_is_described_and_nothing_else() -> None:
    assert [setting.name for setting in settings()] == sorted(ABOUT, key=[s.name for s in settings()].index)
    assert {setting.name for setting in settings()} == set(ABOUT)


def test_every_flag_of_a_setting_is_one() -> None:
    from seamark.cli.up import parser

    flags = {flag for action in parser()._actions for flag in action.option_strings}
    assert {setting.flag for setting in settings() if setting.flag} <= flags


def test_the_document_is_up_to_date() -> None:
    assert (ROOT / "docs" / "configuration.md").read_text() == reference(), (
        "run `seamark config --reference > docs/configuration.md`"
    )


def test_the_verb_prints_both(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["config", "--nodes", "9", "--data-dir", str(tmp_path)]) == 0
    assert tomllib.loads(capsys.readouterr().out)["nodes"]["count"] == 9
    assert main(["config", "--reference"]) == 0
    assert capsys.readouterr().out == reference()
    assert main(["config", "--nodes", "-9"]) == 2
    assert "-9 is not a number of nodes" in capsys.readouterr().err


plain = some.text() | some.integers(-(2**62), 2**62) | some.booleans() | some.floats(allow_nan=False)
values = some.recursive(
    plain | some.lists(plain, max_size=3), lambda inner: some.dictionaries(some.text(), inner, max_size=4)
)


@given(some.dictionaries(some.text(), values, max_size=4))
def test_any_values_can_be_read_back(content: dict[str, Any]) -> None:
    try:
        str(content).encode()
    except UnicodeEncodeError:
        return  # half a surrogate pair is no text that a file could hold
    assert tomllib.loads(toml_text(content, {})) == content


@pytest.mark.parametrize(
    ("options", "environ", "said"),
    [
        ({"cluster_domain": "a b"}, {}, "--cluster-domain a b: not a domain name"),
        ({"cluster_domain": "Cluster.local"}, {}, "not a domain name"),
        ({"cluster_domain": ""}, {}, "not a domain name"),
        ({"cluster_domain": ".".join(["a" * 60] * 4)}, {}, "not a domain name"),
        ({"store": "bogus://x"}, {}, "--store bogus://x: of no known kind"),
        ({}, {"SEAMARK_NODES": "three"}, "SEAMARK_NODES=three: a number is needed"),
        ({}, {"SEAMARK_API_PORT": ""}, "SEAMARK_API_PORT=: a number is needed"),
        ({}, {"SEAMARK_EPHEMERAL": "yes"}, "SEAMARK_EPHEMERAL=yes: true or false is needed"),
    ],
)
def test_wrong_settings_are_named_as_they_were_given(
    options: dict[str, Any], environ: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        from_options({"data_dir": "/d", **options}, environ=environ)
    assert said in str(refused.value)


def test_the_environment_sets_what_flags_do_not() -> None:
    environ = {"SEAMARK_NODES": "4", "SEAMARK_EPHEMERAL": "True", "SEAMARK_PLAIN_HTTP": "0", "SEAMARK_DNS_PORT": "53"}
    made = from_options({"data_dir": "/d", "dns_port": 54}, environ=environ)
    assert (made.nodes, made.ephemeral, made.api.plain_http, made.dns_port) == ({"count": 4}, True, False, 54)
    for domain in ("cluster.local", "k8s.example.org.", "local"):
        assert from_options({"data_dir": "/d", "cluster_domain": domain}, environ={}).cluster_domain == domain


@pytest.mark.parametrize("url", ["/var/lib/seamark/store.db", "./store.db", "SQLITE:///x", "memory:", "etcd://a:1/p"])
def test_every_store_that_can_be_opened_can_be_asked_for(url: str) -> None:
    assert from_options({"data_dir": "/d", "store": url}, environ={}).store_url == url


def test_a_password_in_an_unknown_store_is_not_shown() -> None:
    with pytest.raises(ConfigError) as refused:
        from_options({"data_dir": "/d", "store": "bogus://x?password=secret"}, environ={})
    assert "secret" not in str(refused.value)
