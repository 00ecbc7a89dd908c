"""``seamark up`` in the background: from ready to down, and everything that can keep it from starting."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from commands import Command, running
from waiting import until


@pytest.fixture
def seamark(tmp_path: Path) -> Command:
    return Command(tmp_path)


def pid_of(seamark: Command) -> int:
    return int(json.loads(seamark("status", "-o", "json"))["pid"])


def alive(pid: int) -> bool:
    """Whether it runs; an ended process whose parent has not waited for it does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_from_detach_to_down(seamark: Command) -> None:
    assert seamark.run("status").returncode == 1
    with seamark.up() as said:
        assert said.splitlines()[-1] == "ready"
        assert f"kubeconfig   {seamark.data}/kubeconfig" in said
        status = seamark("status")
        assert status.splitlines()[-1] == "running"
        assert "3 nodes" in status
        told = json.loads(seamark("status", "-o", "json"))
        assert told["healthy"] is True
        assert told["objects"]["nodes"] == 3
        assert told["api"] in said
        assert told["dns"][0] in said
        # The everyday verbs find it without being told where it is.
        assert seamark("get", "svc", "-o", "name") == "service/kubernetes\n"
        assert "ready" in seamark("logs").splitlines()
        assert stat.S_IMODE((seamark.data / "seamark.log").stat().st_mode) == 0o600
        pid = told["pid"]
        assert alive(pid)
        assert seamark("down") == f"stopped pid {pid}\n"
        assert not alive(pid)
    gone = seamark.run("status", "-o", "json")
    assert gone.returncode == 1
    assert json.loads(gone.stdout)["reason"] == "not running"
    assert seamark("down") == f"not running in {seamark.data}\n"
    assert "ready" in seamark("logs", "--tail", "1")


def test_state_outlives_the_process_even_a_killed_one(seamark: Command) -> None:
    with seamark.up("--nodes", "0"):
        manifest = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n"
        seamark("apply", "-f", "-", stdin=manifest)
        before = seamark("get", "svc", "web", "-o", "json")
        os.kill(pid_of(seamark), signal.SIGKILL)
        while seamark.run("status").returncode == 0:
            time.sleep(0.05)
        # What the dead one left behind names a process that is not there: `down` ends no other.
        assert seamark("down") == f"not running in {seamark.data}\n"
    with seamark.up("--nodes", "0"):
        assert seamark("get", "svc", "web", "-o", "json") == before


def test_a_stale_record_never_hits_another_process(seamark: Command) -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        seamark.data.mkdir()
        (seamark.data / "running.json").write_text(json.dumps({"pid": bystander.pid, "ready": True}))
        (seamark.data / "lock").write_text(f"pid {bystander.pid}")
        assert seamark("down") == f"not running in {seamark.data}\n"
        assert bystander.poll() is None
    finally:
        bystander.communicate(b"")


def test_logs_are_followed_until_it_is_down(seamark: Command) -> None:
    with seamark.up("--nodes", "0"), seamark.beside("logs", "-f", stdout=subprocess.PIPE) as following:
        assert following.stdout is not None
        assert any(line == "ready\n" for line in following.stdout)
        with (seamark.data / "seamark.log").open("a") as log:
            log.write("something new\n")
        assert following.stdout.readline() == "something new\n"
        seamark("down")
        assert following.wait() == 0


def test_logs_of_one_in_front_are_on_its_terminal(seamark: Command) -> None:
    nothing = seamark.run("logs")
    assert nothing.returncode == 1
    assert "nothing has run in the background" in nothing.stderr
    options = ("--api-port", "0", "--dns-port", "0", "--nodes", "0")
    with seamark.beside("up", *options, stdout=subprocess.PIPE) as up:
        assert up.stdout is not None
        assert any(line == "ready\n" for line in up.stdout)
        said = seamark.run("logs")
        assert said.returncode == 1
        assert f"pid {up.pid} runs in the foreground" in said.stderr
        assert seamark("down") == f"stopped pid {up.pid}\n"
        assert up.wait() == 0


def test_json_logs(seamark: Command) -> None:
    with seamark.up("--nodes", "0", "--log-format", "json", "-vv"):
        seamark("down")
    lines = [line for line in seamark("logs").splitlines() if line.startswith("{")]
    assert lines
    for line in lines:
        assert {"time", "level", "logger", "message"} <= json.loads(line).keys()


# --- what keeps it from starting -------------------------------------------------------------------


def refused(seamark: Command, *arguments: str, code: int, ways: Sequence[tuple[str, ...]] = ((), ("--detach",))) -> str:
    """What is said of it, the same in front and in the background: one line."""
    said = set()
    for more in ways:
        done = seamark.run("up", *arguments, *more)
        assert done.returncode == code, done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
        said.add(done.stderr)
    (line,) = said
    return line


def test_ports_in_use_are_named(seamark: Command) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        said = refused(seamark, "--api-port", port, "--dns-port", "0", code=1)
        assert port in said
        assert "--api-port" in said
        said = refused(seamark, "--api-port", "0", "--dns-port", port, code=1)
        assert port in said
        assert "--dns-port" in said


def test_a_directory_that_cannot_be_used(seamark: Command) -> None:
    (seamark.home / "file").touch()
    for path in (seamark.home / "file", Path("/proc/seamark")):
        assert str(path) in refused(seamark, "--data-dir", str(path), code=1)


def test_addresses_that_are_not_ours(seamark: Command) -> None:
    said = refused(seamark, "--api-host", "192.0.2.1", "--api-port", "0", "--dns-port", "0", code=1)
    assert said == (
        "seamark: cannot listen on 192.0.2.1:0: Cannot assign requested address; choose another with --api-host\n"
    )
    said = refused(seamark, "--dns-host", "192.0.2.1", "--api-port", "0", code=1)
    assert said.endswith("choose another with --dns-host\n")


def test_files_that_cannot_be_used(seamark: Command) -> None:
    """Of what was broken there, the line says which file, and never how the program is made."""
    (seamark.data / "pki").mkdir(parents=True)
    for name in ("ca.crt", "ca.key"):
        (seamark.data / "pki" / name).write_text("junk")
        (seamark.data / "pki" / name).chmod(0o600)
    ports = ("--api-port", "0", "--dns-port", "0", "--nodes", "0")
    assert f"the certificates in {seamark.data}/pki cannot be used" in refused(seamark, *ports, code=1)
    for name in ("ca.crt", "ca.key"):
        (seamark.data / "pki" / name).unlink()
    (seamark.data / "kubeconfig").mkdir()
    assert f"cannot use {seamark.data}/kubeconfig: Is a directory" in refused(seamark, *ports, code=1)


@pytest.mark.parametrize(("number", "code", "said"), [(signal.SIGINT, 130, ""), (signal.SIGTERM, 1, "told to stop")])
def test_one_that_waits_for_its_store_can_be_interrupted(
    seamark: Command, number: signal.Signals, code: int, said: str
) -> None:
    with socket.socket() as silent:  # it takes connections and says nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        store = f"etcd://127.0.0.1:{silent.getsockname()[1]}/seamark"
        options = ("--store", store, "--api-port", "0", "--dns-port", "0")
        with seamark.beside("up", *options, stderr=subprocess.PIPE) as starting:
            silent.accept()
            starting.send_signal(number)
            assert starting.wait() == code
            assert starting.stderr is not None
            assert said in starting.stderr.read()


def test_a_part_that_dies_is_named_and_the_others_go_on(seamark: Command) -> None:
    """The part fails while there is a file ``broken``."""
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from seamark.api.allocation.repair import PortRepair\n"
        "async def run(self):\n"
        "    while not Path('broken').exists(): await asyncio.sleep(0.01)\n"
        "    raise ValueError('it\\nbroke')\n"
        "PortRepair.run = run\n"
        "from seamark.cli import main\n"
        "sys.exit(main(['up', '--api-port', '0', '--dns-port', '0', '--nodes', '0']))\n"
    )
    broken, log = seamark.home / "broken", seamark.home / "log"
    command = [sys.executable, "-c", program]
    options = {"env": seamark.environment, "cwd": seamark.home}
    with log.open("w") as errors, running(command, stdout=subprocess.PIPE, stderr=errors, **options) as up:
        assert up.stdout is not None
        assert any(line == "ready\n" for line in up.stdout)
        assert json.loads(seamark("status", "-o", "json"))["failing"] == {}
        broken.touch()
        until(lambda: seamark.run("status").returncode)
        told = seamark.run("status").stdout.splitlines()
        assert told[-2:] == ["failing      node-ports: ValueError: it broke", "running, but failing: node-ports"]
        said = json.loads(seamark.run("status", "-o", "json").stdout)
        assert (said["running"], said["healthy"]) == (True, False)
        assert said["failing"] == {"node-ports": "ValueError: it broke"}
        assert seamark("get", "svc", "-o", "name") == "service/kubernetes\n"
        broken.unlink()
        until(lambda: seamark.run("status").returncode == 0)
        up.terminate()
        assert up.wait() == 0
    lines = log.read_text().splitlines()
    assert any("node-ports failed: ValueError: it broke; it is started again in 0.5 s" in line for line in lines)
    assert sum("Traceback" in line for line in lines) == 1


def test_a_second_one_on_the_same_directory(seamark: Command) -> None:
    with seamark.up("--nodes", "0"):
        pid = pid_of(seamark)
        assert f"in use by pid {pid}" in refused(seamark, "--api-port", "0", "--dns-port", "0", code=1)
        assert pid_of(seamark) == pid


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("not toml", "is not TOML"),
        ("nope = 1", "seamark.toml: there is no setting nope"),
        ("[api]\nport = 'x'", "seamark.toml: [api] port: "),
        ("[api]\nport = 70000", "between 0 and 65535"),
        ("[nodes]\ncount = -1", "[nodes]"),
        ("[dns.zone]\npods = 'maybe'", "[dns.zone] pods: 'maybe' is not one of disabled, insecure, verified"),
        ("[network]\nranges = ['10.0.0.0/8', '10.1.0.0/16']", "already a range of IPv4"),
    ],
)
def test_a_broken_configuration(seamark: Command, content: str, said: str) -> None:
    file = seamark.home / "seamark.toml"
    file.write_text(content)
    # In the background it is the same code that reads it, before anything is started.
    assert said in refused(seamark, "--config", str(file), "--dns-port", "0", code=2, ways=[()])


def test_a_file_that_names_what_is_not_there(seamark: Command) -> None:
    said = refused(seamark, "--token-file", "/does/not/exist", "--api-port", "0", "--dns-port", "0", code=2)
    assert said == "seamark: cannot read the token file /does/not/exist: No such file or directory\n"


def test_options_that_are_none(seamark: Command) -> None:
    done = seamark.run("up", "--nope")
    assert done.returncode == 2
    assert "unrecognized arguments: --nope" in done.stderr


# --- the user's kubeconfig -------------------------------------------------------------------------


def test_the_users_kubeconfig_keeps_everything_else(seamark: Command) -> None:
    file = seamark.home / ".kube" / "config"
    file.parent.mkdir()
    foreign = "# mine\napiVersion: v1\nkind: Config\ncurrent-context: prod\n"
    foreign += "contexts:\n- name: prod\n  context: {cluster: prod, user: me}\n"
    foreign += (
        "clusters:\n- name: prod\n  cluster: {server: https://prod.example}\nusers:\n- {name: me, user: {token: 012}}\n"
    )
    file.write_text(foreign)
    with seamark.up("--nodes", "0", "--merge-kubeconfig") as said:
        assert "context      seamark" in said
        assert "--context seamark" in said
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        kept = file.read_text()
        assert all(line in kept.splitlines() for line in foreign.splitlines())
        assert yaml.safe_load(kept)["current-context"] == "prod"
        # The context that was added works, and the data directory's own kubeconfig is not what is used.
        assert seamark("get", "svc", "-o", "name", "--context", "seamark") == "service/kubernetes\n"
        assert "prod.example" in seamark.run("get", "svc").stderr


def test_a_kubeconfig_that_cannot_be_merged_into(seamark: Command) -> None:
    file = seamark.home / ".kube" / "config"
    file.parent.mkdir()
    file.write_text("just words")
    for more in ((), ("--detach",)):
        done = seamark.run("up", "--api-port", "0", "--dns-port", "0", "--nodes", "0", "--merge-kubeconfig", *more)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"seamark: {file} is not a kubeconfig: it is left as it is\n"
    assert file.read_text() == "just words"
    while seamark.run("status").stdout.splitlines()[-1] != "not running":
        time.sleep(0.05)


def test_a_new_kubeconfig_is_made_under_another_name(seamark: Command) -> None:
    target = seamark.home / "elsewhere"
    seamark.environment["KUBECONFIG"] = str(target)
    with seamark.up("--nodes", "0", "--merge-kubeconfig", "mine"):
        assert yaml.safe_load(target.read_text())["current-context"] == "mine"
        assert seamark("get", "ns", "default", "-o", "name") == "namespace/default\n"


# --- nodes -----------------------------------------------------------------------------------------


def test_a_node_loses_its_power_and_gets_it_back(seamark: Command) -> None:
    with seamark.up("--nodes", "2"):
        assert seamark("node", "stop", "node-2") == "node/node-2 stopped\n"
        assert [line.split()[:2] for line in seamark("get", "nodes").splitlines()[1:]] == [
            ["node-1", "Ready"],
            ["node-2", "NotReady"],
        ]
        assert seamark("node", "start", "node-2") == "node/node-2 started\n"
        assert "NotReady" not in seamark("get", "nodes")
        seamark("apply", "-f", "-", stdin="apiVersion: v1\nkind: Node\nmetadata: {name: real}\n")
        real = seamark.run("node", "stop", "real")
        assert (real.returncode, real.stderr.count("\n")) == (1, 1)
        assert "not a simulated one" in real.stderr
        missing = seamark.run("node", "stop", "nix")
        assert (missing.returncode, missing.stderr) == (1, 'Error from server (NotFound): nodes "nix" not found\n')
    nobody = seamark.run("node", "stop", "node-1")
    assert nobody.returncode == 1
    assert "no Seamark runs" in nobody.stderr
