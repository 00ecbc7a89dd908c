"""The everyday verbs, called in this process against a Seamark that runs in another."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from seamark_process import Seamark

from free_ports import free_port
from seamark.cli import main
from seamark.dns.resolve import SILENT, Told

SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: web, labels: {app: web}}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-0, labels: {app: web}}
spec: {containers: [{name: c, image: example/web, ports: [{containerPort: 8080}]}]}
"""

Said = tuple[int, str, str]
Run = Callable[..., Said]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seamark]:
    directory = tmp_path_factory.mktemp("verbs") / "data"
    seamark = Seamark(directory, "--dns-port", "0", "--no-node-ports", verb="up")
    yield seamark
    assert seamark.stop() == 0


@pytest.fixture
def run(server: Seamark, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A command line: its exit code, what it printed, and what it said about errors."""
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
    monkeypatch.setenv("SEAMARK_DATA_DIR", str(server.directory))

    def run(*arguments: str) -> Said:
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = int(str(ended.code))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def web(run: Run, tmp_path: Path) -> Iterator[Path]:
    """A Service with one ready Pod, from this file."""
    file = tmp_path / "web.yaml"
    file.write_text(SERVICE)
    code, out, _ = run("apply", "-f", str(file))
    assert (code, out.splitlines()) == (0, ["service/web created", "pod/web-0 created"])
    while "ready: true" not in run("get", "endpointslices", "-l", "kubernetes.io/service-name=web", "-o", "yaml")[1]:
        pass  # the simulated node makes it ready, then a controller puts it into the slice
    yield file
    run("delete", "-f", str(file))


def test_apply_and_get_and_delete(run: Run, web: Path) -> None:
    assert run("apply", "-f", str(web))[1].splitlines() == ["service/web unchanged", "pod/web-0 unchanged"]
    code, out, _ = run("get", "services,pods", "-l", "app=web")
    assert code == 0
    assert "service/web" in out
    assert "pod/web-0" in out
    assert json.loads(run("get", "svc", "web", "-o", "json")[1])["spec"]["ports"][0]["targetPort"] == 8080
    assert yaml.safe_load(run("get", "svc/web", "-o", "yaml")[1])["metadata"]["name"] == "web"
    assert run("get", "pods", "-o", "name")[1] == "pod/web-0\n"
    assert "node-" in run("get", "pods", "-o", "wide")[1]
    assert "kube-dns" in run("get", "svc", "-A")[1]
    assert run("delete", "pod", "-l", "app=web")[0] == 0
    code, out, err = run("get", "pods")
    assert (code, "No resources found" in out + err) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["get", "pods", "none"], 1, '"none" not found'),
        (["get", "nonsense"], 1, "nonsense"),
        (["get"], 2, ""),
        (["delete", "svc", "none"], 1, '"none" not found'),
        (["delete"], 2, ""),
        (["apply", "-f", "/does/not/exist.yaml"], 1, "/does/not/exist.yaml"),
        (["node", "stop", "nowhere"], 1, "nowhere"),
        (["logs"], 1, ""),
        (["why", "svc/none"], 1, "none"),
        (["why", "-n", "shpo"], 2, "there is no namespace shpo"),
        (["why", "-n", "shpo", "-o", "json"], 2, "there is no namespace shpo"),
        (["audit", "-n", "shpo"], 2, "there is no namespace shpo"),
        (["export", "-n", "shpo"], 1, 'namespaces "shpo" not found'),
        (["get", "servces"], 1, 'have a resource type "servces", but services'),
        (["get", "endpointslcie"], 1, ", but endpointslices"),
        (["get", "widgets"], 1, 'have a resource type "widgets"\n'),
        (["why", "x/y"], 2, "svc/NAME"),
        (["resolve", "none.default"], 1, "none.default"),
    ],
)
def test_mistakes_are_one_line_and_a_code(run: Run, arguments: list[str], code: int, words: str) -> None:
    found, out, err = run(*arguments)
    assert (found, words in out + err) == (code, True), (found, out, err)
    assert "Traceback" not in err


def test_resolve_does_not_wait_for_a_cluster_that_cannot_be_read(run: Run, server: Seamark, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    known = server.kubeconfig.read_text()
    kubeconfig.write_text(known.replace(server.url, f"https://127.0.0.1:{free_port()}"))
    code, out, err = run("resolve", "web", "--kubeconfig", str(kubeconfig))
    assert (code, out) == (1, "")
    assert err.startswith("seamark: cannot reach https://127.0.0.1:")
    token = yaml.safe_load(known)["users"][0]["user"]["token"]
    kubeconfig.write_text(known.replace(token, "wrong"))
    code, out, err = run("resolve", "web", "--kubeconfig", str(kubeconfig))
    assert (code, out) == (1, "")
    assert err.startswith(f"Error from server (Unauthorized): {server.url} does not accept the token")


def test_resolve_asks_a_silent_server_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def silence(address: tuple[str, int], name: str, kind: str) -> Told:
        asked.append(name)
        return Told(SILENT, (), "192.0.2.1:53 does not answer: it timed out")

    monkeypatch.setattr("seamark.dns.resolve.ask_server", silence)
    code, out, err = run("resolve", "none", "--server", "192.0.2.1")
    assert (code, out, err) == (1, "", "seamark: 192.0.2.1:53 does not answer: it timed out\n")
    assert len(asked) == 1


def test_status_tells_where_it_runs(run: Run, server: Seamark) -> None:
    code, out, _ = run("status")
    assert code == 0
    assert server.url in out
    assert server.url in json.dumps(json.loads(run("status", "-o", "json")[1]))


def test_why_of_a_service_and_its_pod_and_its_name(run: Run, web: Path) -> None:
    code, out, _ = run("why", "svc/web")
    assert (code, "healthy" in out) == (0, True), out
    assert run("why", "pod/web-0")[0] == 0
    assert run("why", "dns", "web")[0] == 0
    assert run("why", "-A")[0] in (0, 1)
    assert "goes to" in run("why", "svc/web", "--from", "pod/web-0")[1]
    assert json.loads(run("why", "svc/web", "-o", "json")[1])
    assert run("why", "-f", str(web))[0] in (0, 1)
    code, out, _ = run("doctor")
    assert (code, out.splitlines()[0]) == (0, "service discovery is well"), out
    checks = {each["about"]: each["state"] for each in json.loads(run("doctor", "-o", "json")[1])["checks"]}
    assert {checks[each] for each in ("clock", "DNS", "slices", "nodes")} == {"well"}
    assert run("audit")[0] == 0
    assert run("audit", "-A", "--fix", "--yes")[0] == 0
    assert run("resolve", "web")[0] == 0


def test_a_node_that_is_switched_off_and_on(run: Run) -> None:
    assert run("node", "stop", "node-2")[0] == 0
    code, out, _ = run("node", "list")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["NODE", "STATE"],
        ["node-1", "running"],
        ["node-2", "stopped"],
        ["node-3", "running"],
    ]
    assert run("node", "list", "node-1")[0] == run("node", "stop")[0] == 2
    assert run("node", "start", "node-2")[0] == 0


def test_the_scenes_come_out_as_they_should(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a narrow terminal too, where tables are printed as lists; the journey has a wide one."""
    monkeypatch.setenv("COLUMNS", "40")
    code, out, err = run("demo", "-n", "scenes")
    assert code == 0, (out, err)
    assert "why" in out


def test_backups_exports_and_checks(run: Run, tmp_path: Path, server: Seamark) -> None:
    assert run("backup", str(tmp_path / "kept"))[0] == 0
    assert (tmp_path / "kept").stat().st_mode & 0o077 == 0
    code, _, err = run("export", "-A")
    assert (code, err) == (0, "")  # the kinds that are deprecated were not asked for
    assert "deprecated" in run("export", "endpoints")[2]
    assert run("restore", str(tmp_path / "kept"), "--data-dir", str(tmp_path / "again"))[0] == 0
    assert run("fsck", "--data-dir", str(tmp_path / "again"))[0] == 0
