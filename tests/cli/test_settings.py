"""The configuration: where settings come from, what is refused, ``seamark config`` and its reference."""

from __future__ import annotations

import importlib
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from seamark.cli import VERBS, main
from seamark.cli.config import effective
from seamark.cli.data_dir import data_dir_of
from seamark.cli.reference import reference
from seamark.cli.settings import SCOPES, config_of, offered
from seamark.cli.toml_text import toml_text
from seamark.config import Config, ConfigError, find, gathered, settings, settled

ROOT = Path(__file__).parents[2]


def from_flags(verb: str, *arguments: str) -> Config:
    parser = importlib.import_module(VERBS[verb][0]).parser()
    return config_of(parser.parse_args(arguments), verb)


def from_file(text: str, tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "seamark.toml").write_text(text)
    return gathered({}, {}, file=str(tmp_path / "seamark.toml"))


# --- where settings come from ----------------------------------------------------------------------


def test_later_sources_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "seamark.toml").write_text("dns_port = 52\n[nodes]\ncount = 4\n[api]\nport = 1\n[dns.zone]\nttl = 9\n")
    monkeypatch.setenv("SEAMARK_CONFIG", str(tmp_path / "seamark.toml"))
    monkeypatch.setenv("SEAMARK_DNS_PORT", "53")
    monkeypatch.setenv("SEAMARK_API_PORT", "2")
    monkeypatch.setenv("SEAMARK_EPHEMERAL", "True")
    monkeypatch.setenv("SEAMARK_PLAIN_HTTP", "0")
    monkeypatch.setenv("SEAMARK_SERVICE_RANGE", "fd00:1::/112,10.1.0.0/16")
    made = from_flags("up", "--api-port", "3", "--node-port-range", "1-9", "--load-balancer-pool", "none")
    assert (made.nodes.count, made.dns_port, made.api.port, made.dns.zone.ttl) == (4, 53, 3, 9)
    assert (made.ephemeral, made.api.plain_http) == (True, False)
    assert (made.network.ranges, made.network.node_ports) == (("fd00:1::/112", "10.1.0.0/16"), (1, 9))
    assert made.surroundings.load_balancer_pool == ()


def test_verbosity_is_counted_unless_a_level_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEAMARK_LOG_LEVEL", "error")
    given = [(), ("-v",), ("-vv",), ("-vvv",), ("-v", "--log-level", "warning")]
    assert [from_flags("up", *each).log.level for each in given] == ["error", "info", "debug", "debug", "warning"]


def test_every_verb_takes_the_file(tmp_path: Path) -> None:
    (tmp_path / "all.toml").write_text(
        "cluster_domain = 'k.example'\n[cluster]\nkubeconfig = 'k'\n"
        "[discovery]\nbatch = 0.5\n[dns.forward]\ntimeout = 1.0\n"
    )
    for verb in ("controllers", "dns"):
        made = from_flags(verb, "--config", str(tmp_path / "all.toml"))
        assert (made.cluster.kubeconfig, made.discovery.batch, made.dns.forward.timeout) == ("k", 0.5, 1.0)
        assert made.dns.zone.zones == ("k.example", "in-addr.arpa", "ip6.arpa")
        assert (made.dns.listen, made.dns.zone.pods) == ((":53",), "disabled")
    resolving = config_of(
        importlib.import_module(VERBS["resolve"][0])
        .parser()
        .parse_args(["web", "--config", str(tmp_path / "all.toml"), "--no-reverse"]),
        "resolve",
    )
    assert resolving.dns.zone.zones == ("k.example",)


def test_settings_that_follow_from_others() -> None:
    assert settled({}).dns.listen == ("127.0.0.1:1053",)
    assert settled({"dns_host": "::1", "dns_port": 53}).dns.listen == ("[::1]:53",)
    assert settled({"dns": {"listen": [":5"]}}).dns.listen == (":5",)
    assert settled({}).dns.zone.pods == "verified"
    assert settled({"cluster_domain": "a.b"}).dns.zone.zones == ("a.b", "in-addr.arpa", "ip6.arpa")
    around = settled({}).surroundings
    assert around.root_certificates
    linux = sys.platform == "linux"
    assert around.load_balancer_pool[0] == ("127.200.0.0/24" if linux else "203.0.113.0/24")
    unserved = settled({"userspace": {"enabled": False}}).surroundings
    assert unserved.load_balancer_pool[0] == "203.0.113.0/24"
    assert settled({"nodes": {"count": 0}}).surroundings.load_balancer_pool == ()
    plain = settled({"profile": "plain"}).surroundings
    assert (plain.namespace_contents, plain.root_certificates) == (False, False)
    assert settled({"profile": "plain", "surroundings": {"root_certificates": True}}).surroundings.root_certificates


def test_the_data_directory_of_the_file_is_known_to_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "seamark.toml").write_text("data_dir = '/from/the/file'\n")
    monkeypatch.setenv("SEAMARK_CONFIG", str(tmp_path / "seamark.toml"))
    monkeypatch.delenv("SEAMARK_DATA_DIR", raising=False)
    assert data_dir_of(None) == Path("/from/the/file")
    monkeypatch.setenv("SEAMARK_DATA_DIR", "/from/a/variable")
    assert data_dir_of(None) == Path("/from/a/variable")
    assert data_dir_of("/from/a/flag") == Path("/from/a/flag")


@pytest.mark.parametrize("url", ["/var/lib/seamark/store.db", "./store.db", "SQLITE:///x", "memory:", "etcd://a:1/p"])
def test_every_store_that_can_be_opened_can_be_asked_for(url: str) -> None:
    assert settled({"store": url}).store_url == url


# --- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nope = 1\n", "there is no setting nope"),
        ("[dsn]\n", "there is no setting dsn; did you mean dns?"),
        ("[nodes]\ncuont = 1\n", "[nodes] there is no setting cuont; did you mean count?"),
        ("[dns.zone]\nttls = 1\n", "[dns.zone] there is no setting ttls; did you mean ttl?"),
        ("[api]\nport = 'x'\n", "[api] port: Expected `int`, got `str`"),
        ("[api]\nport = 70000\n", "[api] port 70000: a port is between 0 and 65535"),
        ("[dns]\nlisten = ['x:y']\n", "[dns] cannot listen on 'x:y'"),
        ("[dns]\nzone = 3\n", "[dns.zone] Expected `object`, got `int`"),
        ("[dns.zone]\nttl = -1\n", "[dns.zone] ttl must be from 0 to 3600"),
        ("[dns.zone]\npods = 'maybe'\n", "[dns.zone] pods: 'maybe' is not one of disabled, insecure, verified"),
        ("[[dns.forward.routes]]\nto = ['dns.example']\n", "not the address of an upstream resolver: 'dns.example'"),
        ("[nodes]\ncount = -1\n", "[nodes] -1 is not a number of nodes"),
        ("[discovery]\nbatch = -1\n", "[discovery] batch is a number of seconds"),
        ("[discovery]\ncontrollers = ['x']\n", "[discovery] controllers: 'x' is not one of endpoints, endpointslices"),
        ("[election]\nrenew_deadline = 20\n", "[election] leader election needs"),
        ("[surroundings]\nkeep_events_seconds = 0\n", "[surroundings] keep_events_seconds"),
        (
            "[network]\nranges = ['10.0.0.0/24', '10.1.0.0/24']\n",
            "[network] service range 10.1.0.0/24: there is already",
        ),
        ("[log]\nlevel = 'loud'\n", "[log] level: 'loud' is not one of debug, info, warning, error"),
        ("not toml", "is not TOML"),
    ],
)
def test_a_wrong_file_is_named_with_table_and_key(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        from_file(text, tmp_path)
    assert said in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path / "seamark.toml"))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("flags", "environ", "said"),
    [
        ({"nodes.count": ["x"]}, {}, "--nodes x: a number is needed"),
        ({"nodes.count": None}, {"SEAMARK_NODES": "three"}, "SEAMARK_NODES=three: a number is needed"),
        ({"api.port": None}, {"SEAMARK_API_PORT": ""}, "SEAMARK_API_PORT=: a number is needed"),
        ({"ephemeral": None}, {"SEAMARK_EPHEMERAL": "yes"}, "SEAMARK_EPHEMERAL=yes: true or false is needed"),
        ({"log.level": None}, {"SEAMARK_LOG_LEVEL": "x"}, "SEAMARK_LOG_LEVEL=x: one of debug, info, warning, error"),
        ({"network.node_ports": ["1"]}, {}, "--node-port-range 1: expected LOW-HIGH"),
        ({"dns.hosts": ["/nowhere"]}, {}, "--hosts /nowhere: cannot read it: No such file"),
    ],
)
def test_a_wrong_flag_or_variable_is_named(flags: dict[str, Any], environ: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        gathered(flags, environ)
    assert said in str(refused.value)


@pytest.mark.parametrize("domain", ["a b", "Cluster.local", "", ".".join(["a" * 60] * 4)])
def test_what_is_no_domain(domain: str) -> None:
    with pytest.raises(ConfigError, match="not a domain name"):
        settled({"cluster_domain": domain})


def test_plain_http_is_for_loopback() -> None:
    assert settled({"api": {"plain_http": True, "host": "::1"}}).api.plain_http
    with pytest.raises(ConfigError, match="loopback only"):
        settled({"api": {"plain_http": True, "host": "0.0.0.0"}})


def test_a_password_in_an_unknown_store_is_not_shown() -> None:
    with pytest.raises(ConfigError, match="store bogus://x: of no known kind") as refused:
        settled({"store": "bogus://x?password=secret"})
    assert "secret" not in str(refused.value)


# --- the verb --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "given_"),
    [
        ("up", {}),
        ("up", {"nodes": {"count": 7}, "dns_port": 0, "ephemeral": True, "api": {"host": "::1"}}),
        ("up", {"network": {"ranges": ["fd00:1::/112", "10.1.0.0/16"]}, "log": {"format": "json"}}),
        ("apiserver", {"store": "etcd://a:1,b:2/p", "cluster_domain": "k.example"}),
        ("controllers", {"discovery": {"batch": 0.5}}),
        ("dns", {"dns": {"forward": {"routes": [{"zone": "a", "to": ["1.1.1.1"]}]}}}),
    ],
)
def test_what_is_printed_can_be_used_and_printed_again(verb: str, given_: dict[str, Any], tmp_path: Path) -> None:
    text = effective(given_, verb)
    again = from_file(text, tmp_path)
    assert effective(again, verb) == text
    own = SCOPES[verb].own_cluster
    assert settled(again, own_cluster=own) == settled(given_, own_cluster=own)


def test_what_follows_from_other_settings_goes_on_following(tmp_path: Path) -> None:
    text = effective({})
    assert '# listen = ["127.0.0.1:1053"]' in text
    text = text.replace("dns_port = 1053", "dns_port = 53").replace('"cluster.local"', '"k.example"', 1)
    moved = settled(from_file(text, tmp_path))
    assert moved.dns.listen == ("127.0.0.1:53",)
    assert moved.dns.zone.zones[0] == "k.example"


def test_the_verb_prints_the_settings_of_any_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["config", "--nodes", "9", "--data-dir", str(tmp_path)]) == 0
    assert tomllib.loads(capsys.readouterr().out)["nodes"]["count"] == 9
    assert main(["config", "dns", "--ttl", "30"]) == 0
    read = tomllib.loads(capsys.readouterr().out)
    assert (read["dns"]["zone"]["ttl"], set(read)) == (30, {"cluster_domain", "cluster", "dns", "log"})
    assert main(["config", "controllers", "--no-leader-elect"]) == 0
    assert tomllib.loads(capsys.readouterr().out)["election"]["enabled"] is False
    assert main(["config", "--nodes", "-9"]) == 2
    assert "[nodes] -9 is not a number of nodes" in capsys.readouterr().err
    assert main(["config", "-v", "dns"]) == 2
    assert "the command comes first" in capsys.readouterr().err


def test_the_document_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--reference"]) == 0
    assert capsys.readouterr().out == reference()
    assert (ROOT / "docs" / "configuration.md").read_text() == reference(), (
        "run `seamark config --reference > docs/configuration.md`"
    )


def test_every_setting_has_one_sentence_and_is_used() -> None:
    for setting in settings():
        assert setting.about.endswith("."), setting.name
        assert any(scope.uses(setting) for scope in SCOPES.values()), setting.name
        assert not setting.flag or any(scope.offers(setting) for scope in SCOPES.values()), setting.name
        assert find({"a": {"b": 1}}, setting.name) is None


@pytest.mark.parametrize("verb", SCOPES)
def test_flags_are_different_from_each_other(verb: str) -> None:
    flags = [setting.flag for setting in offered(SCOPES[verb])]
    assert len(flags) == len(set(flags))


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
