"""Identities that are kept fresh: files that change, plugins that are run again."""

import json
import logging
import stat
import sys

import pytest

from seamark.access.blocking import run
from seamark.access.credentials import Certificate, Exec, Files, Identity, Plugin
from seamark.errors import Unauthorized
from virtual_time import VirtualClock

# --- files -----------------------------------------------------------------------------------------------


async def test_token_files_are_read_again(tmp_path):
    clock, token = VirtualClock(), tmp_path / "token"
    token.write_text("one\n")
    credentials = Files(token=token, clock=clock)
    assert await credentials.current() == Identity("Bearer one")
    token.write_text("two")
    clock.now += 59
    assert await credentials.current() == Identity("Bearer one")
    clock.now += 1
    assert await credentials.current() == Identity("Bearer two")


async def test_a_refused_token_is_read_again_at_once(tmp_path):
    clock, token = VirtualClock(), tmp_path / "token"
    token.write_text("one")
    credentials = Files(token=token, clock=clock)
    identity = await credentials.current()
    token.write_text("two")
    assert credentials.refused(identity)
    assert await credentials.current() == Identity("Bearer two")
    # A late refusal of the first says nothing about the second.
    token.write_text("three")
    assert credentials.refused(identity)
    assert await credentials.current() == Identity("Bearer two")


async def test_a_file_that_vanishes_leaves_what_it_said(tmp_path, caplog):
    clock, token = VirtualClock(), tmp_path / "token"
    token.write_text("one")
    credentials = Files(token=token, clock=clock)
    await credentials.current()
    token.unlink()
    clock.now += 60
    with caplog.at_level(logging.WARNING):
        assert await credentials.current() == Identity("Bearer one")
    assert "using what it said before" in caplog.text


async def test_files_that_never_were(tmp_path):
    with pytest.raises(Unauthorized, match=r"cannot read who we are: .*No such file"):
        await Files(token=tmp_path / "token").current()
    (tmp_path / "token").write_text("\n")
    with pytest.raises(Unauthorized, match=r"the token file .* is empty"):
        await Files(token=tmp_path / "token").current()


async def test_renewed_certificates_are_noticed(tmp_path):
    clock, certificate, key = VirtualClock(), tmp_path / "cert", tmp_path / "key"
    certificate.write_bytes(b"C1")
    key.write_bytes(b"K1")
    credentials = Files(certificate=(certificate, key), fixed=Identity("Bearer t"), clock=clock)
    assert await credentials.current() == Identity("Bearer t", Certificate(b"C1", b"K1"))
    certificate.write_bytes(b"C2")
    key.write_bytes(b"K2")
    clock.now += 60
    assert await credentials.current() == Identity("Bearer t", Certificate(b"C2", b"K2"))


# --- plugins ---------------------------------------------------------------------------------------------

V1 = "client.authentication.k8s.io/v1"


@pytest.fixture
def plugin(tmp_path):
    """A plugin that answers what ``answer`` says, and notes how it was called."""

    def make(answer, *, status=0, stderr="", **more):
        script, answer_file, calls = tmp_path / "plugin", tmp_path / "answer", tmp_path / "calls"
        answer_file.write_text(answer if isinstance(answer, str) else json.dumps(answer))
        script.write_text(
            f"#!{sys.executable}\n"
            "import json, os, sys\n"
            f"with open({str(calls)!r}, 'a') as calls:\n"
            "    call = {'args': sys.argv[1:], 'info': os.environ['KUBERNETES_EXEC_INFO'],\n"
            "            'env': os.environ.get('EXTRA', ''), 'stdin': sys.stdin.read()}\n"
            "    calls.write(json.dumps(call) + '\\n')\n"
            f"sys.stderr.write({stderr!r})\n"
            f"sys.stdout.write(open({str(answer_file)!r}).read())\n"
            f"sys.exit({status})\n"
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        described = Plugin(str(script), more.pop("api_version", V1), **more)
        described_calls.append(calls)
        return described

    described_calls = []
    make.calls = lambda: [json.loads(line) for line in described_calls[-1].read_text().splitlines()]
    make.answer = lambda answer: (tmp_path / "answer").write_text(json.dumps(answer))
    return make


def credential(**status):
    return {"kind": "ExecCredential", "apiVersion": V1, "status": status}


def no_terminal():
    return False


async def test_a_plugin_is_told_and_answers(plugin):
    described = plugin(credential(token="t"), args=("a", "b"), env={"EXTRA": "x"}, cluster={"server": "https://s"})
    credentials = Exec(described, terminal=no_terminal)
    assert await credentials.current() == Identity("Bearer t")
    assert await credentials.current() == Identity("Bearer t")
    (call,) = plugin.calls()
    assert call["args"] == ["a", "b"]
    assert call["env"] == "x"
    assert call["stdin"] == ""
    assert json.loads(call["info"]) == {
        "kind": "ExecCredential",
        "apiVersion": V1,
        "spec": {"interactive": False, "cluster": {"server": "https://s"}},
    }


async def test_a_plugin_is_run_again_when_its_answer_expires_or_is_refused(plugin):
    clock = VirtualClock(1_700_000_000)
    described = plugin(credential(token="one", expirationTimestamp="2023-11-14T22:14:20Z"))
    credentials = Exec(described, clock=clock, terminal=no_terminal)
    first = await credentials.current()
    plugin.answer(credential(token="two"))
    clock.now += 59
    assert await credentials.current() == first
    clock.now += 1
    second = await credentials.current()
    assert second == Identity("Bearer two")
    plugin.answer(credential(token="three"))
    assert credentials.refused(first)
    assert await credentials.current() == second
    assert credentials.refused(second)
    assert await credentials.current() == Identity("Bearer three")
    assert len(plugin.calls()) == 3


async def test_plugins_may_give_certificates(plugin):
    described = plugin(credential(clientCertificateData="CERT", clientKeyData="KEY"))
    assert await Exec(described, terminal=no_terminal).current() == Identity("", Certificate(b"CERT", b"KEY"))
    own = Certificate(b"own", b"key")
    plugin.answer(credential(token="t"))
    assert await Exec(described, certificate=own, terminal=no_terminal).current() == Identity("Bearer t", own)


@pytest.mark.parametrize(
    ("answer", "more", "complaint"),
    [
        ("nonsense", {}, "printed no ExecCredential: JSON is malformed"),
        (credential(), {}, "gave neither a token nor a certificate"),
        ({"kind": "ExecCredential", "apiVersion": V1}, {}, "gave neither a token nor a certificate"),
        (credential(clientKeyData="KEY"), {}, "gave only one of certificate and key"),
        (
            credential(token="t"),
            {"api_version": V1 + "beta1"},
            f"printed ExecCredential of {V1}, but the kubeconfig asks for ExecCredential of {V1}beta1",
        ),
        ("", {"status": 3, "stderr": "log in first\n"}, "failed with exit status 3: log in first$"),
        ("", {"interactive_mode": "Always"}, "has interactiveMode Always and there is no terminal to ask on"),
    ],
)
async def test_plugins_that_fail(plugin, answer, more, complaint):
    described = plugin(answer, **more)
    with pytest.raises(Unauthorized, match=complaint):
        await Exec(described, terminal=no_terminal).current()


async def test_a_plugin_that_is_not_installed():
    described = Plugin("/nowhere/plugin", V1, install_hint="Install it from example.com.\n")
    complaint = (
        "^cannot run the credential plugin /nowhere/plugin: No such file or directory; Install it from example.com.$"
    )
    with pytest.raises(Unauthorized, match=complaint):
        await Exec(described).current()


def test_a_plugin_without_an_event_loop(plugin):
    credentials = Exec(plugin(credential(token="t")), terminal=no_terminal)
    assert run(credentials.current()) == Identity("Bearer t")
    assert run(credentials.current()) == Identity("Bearer t")
    assert len(plugin.calls()) == 1
    missing = Exec(Plugin("/does/not/exist", V1, install_hint="get it"), terminal=no_terminal)
    with pytest.raises(Unauthorized, match=r"cannot run the credential plugin .*: No such file or directory; get it"):
        run(missing.current())
