"""``seamark why`` against a running Seamark: the catalogue's set-ups made real, and the proposed fixes carried out."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import pty
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import catalogue_cases
import pytest
import yaml
from commands import SEAMARK, Program
from seamark_process import Seamark

from seamark.access.kubeconfig import load
from seamark.access.remote import RemoteCluster
from seamark.clock import SystemClock
from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, INGRESS_CLASSES, NAMESPACES, NODES, PODS, SERVICES
from seamark.why.look import look_at_service
from seamark.why.render import Style, width
from seamark.why.render import report as shown
from seamark.why.report import Report

TESTS = Path(__file__).parents[2]
CASES = [path for path in catalogue_cases.everything() if catalogue_cases.kept(path).on_a_server]
_numbers = itertools.count(500)  # a namespace of the last test may still be going
_turns = itertools.count()
TURNS = 20  # the controllers have long done what they will do when they took up so much other work meanwhile
LARGE = ("endpoints-over-capacity", "endpoints-too-many")  # shown in memory; a thousand Pods take their time


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seamark]:
    running = Seamark(
        tmp_path_factory.mktemp("why") / "data", "--ephemeral", "--dns-port", "0", "--nodes", "0", verb="up"
    )
    yield running
    running.stop()


@pytest.fixture
async def cluster(server: Seamark) -> AsyncIterator[RemoteCluster]:
    async with RemoteCluster(load(server.kubeconfig, environ={})) as connected:
        yield connected


# --- making it real --------------------------------------------------------------------------------


class Stage:
    """One set-up on the server, in namespaces of its own; its nodes go when it ends."""

    def __init__(self, cluster: RemoteCluster, path: Path, number: int) -> None:
        self.cluster = cluster
        self.case = catalogue_cases.load(path, {"shop": f"shop-{number}", "back": f"back-{number}"})
        said = str(self.case)
        self._namespaces = [name for name in (f"shop-{number}", f"back-{number}") if name in said]

    async def __aenter__(self) -> Stage:
        for name in self._namespaces:
            await self.cluster.create(NAMESPACES, {"metadata": {"name": name}})
        for obj in self.case.objects:
            await self._make(obj)
        return self

    async def __aexit__(self, *_: object) -> None:
        for obj in self.case.objects:
            if obj["kind"] == "Node":
                await self.cluster.delete(NODES, obj["metadata"]["name"])
            if obj["kind"] == "IngressClass":
                await self.cluster.delete(INGRESS_CLASSES, obj["metadata"]["name"])
            if obj["kind"] == "Pod":
                # They have no node, so no kubelet would ever report their end.
                meta = obj["metadata"]
                await self.cluster.delete(PODS, meta["name"], namespace=meta["namespace"], grace_seconds=0)
            if obj["metadata"].get("finalizers"):
                where = catalogue_cases.RESOURCES[obj["kind"]]
                meta = obj["metadata"]
                free = {"metadata": {"finalizers": None}}
                await self.cluster.patch(where, meta["name"], free, namespace=meta["namespace"])
        for name in self._namespaces:
            await self.cluster.delete(NAMESPACES, name)

    async def _make(self, obj: dict[str, Any]) -> None:
        resource = catalogue_cases.RESOURCES[obj["kind"]]
        meta = obj["metadata"]
        namespace = meta.get("namespace", "")
        await self.cluster.create(resource, obj, namespace=namespace)
        if "status" in obj and resource in (PODS, NODES, SERVICES):
            status = {"status": obj["status"]}
            await self.cluster.patch(resource, meta["name"], status, namespace=namespace, subresource="status")
        if "deletionTimestamp" in meta:
            await self.cluster.delete(resource, meta["name"], namespace=namespace)

    async def carry_on(self) -> None:
        """What happens once all was well."""
        for step in self.case.then:
            await self.until(lambda report: report.healthy)
            what = step["patch"]
            where = catalogue_cases.RESOURCES[what["kind"]]
            await self.cluster.patch(where, what["name"], what["patch"], namespace=what["namespace"])

    async def until(self, so: Any, key: tuple[str, str] | None = None) -> Report:
        """Look until it is as expected; fail with the report if the controllers leave it as it is."""
        told, turns = None, 0
        while not so(report := await self._look(key)):
            before, told = told, (report.health, report.ready, [each.code for each in report.findings])
            turns = turns + 1 if told == before else 0
            assert turns < TURNS, shown(report, Style(columns=200))
            await self._turn()
        return report

    async def _turn(self) -> None:
        """Wait until the controllers have done work that was given to them after all that is on the stage."""
        name = f"turn-{next(_turns)}"
        ports = [{"port": 80}]
        mirrored = {"addresses": [{"ip": "10.9.9.9"}], "ports": ports}
        for resource, obj in (
            (SERVICES, {"metadata": {"name": name}, "spec": {"ports": ports, "selector": {"turn": name}}}),
            (SERVICES, {"metadata": {"name": f"{name}-mirrored"}, "spec": {"ports": ports}}),
            (ENDPOINTS, {"metadata": {"name": f"{name}-mirrored"}, "subsets": [mirrored]}),
        ):
            await self.cluster.create(resource, obj, namespace="default")
        of_both = f"kubernetes.io/service-name in ({name},{name}-mirrored)"
        while len((await self.cluster.list(ENDPOINT_SLICES, namespace="default", labels=of_both)).items) < 2:
            await asyncio.sleep(0.05)

    async def _look(self, key: tuple[str, str] | None) -> Report:
        if key in (None, self.case.key):
            return await catalogue_cases.look(self.cluster, self.case, clock=IMPATIENT)
        return await look_at_service(self.cluster, key, clock=IMPATIENT)

    async def addresses(self, namespace: str, name: str) -> tuple[set[str], set[int]]:
        """What the server's EndpointSlices list as ready for a Service, and on which ports."""
        listing = await self.cluster.list(
            ENDPOINT_SLICES, namespace=namespace, labels=f"kubernetes.io/service-name={name}"
        )
        ready = {
            address
            for each in listing.items
            for endpoint in each["endpoints"] or ()
            if endpoint.get("conditions", {}).get("ready", True)
            for address in endpoint["addresses"]
        }
        return ready, {port["port"] for each in listing.items if each["endpoints"] for port in each["ports"] or ()}


class Impatient(SystemClock):
    async def sleep(self, seconds: float) -> None:
        await super().sleep(min(seconds, 0.2))


IMPATIENT = Impatient()


def set_ups() -> Iterator[Any]:
    """The first set-up of each cause, and the first with a fix; the others are for `make soak`.

    Tests in memory look at all of them, with the same controllers and the same commands.  What a server adds, that it
    takes such objects and that kubectl carries out such a fix, is the same for all set-ups of a cause.
    """
    known: set[tuple[str | None, bool]] = set()
    for number, path in enumerate(CASES):
        case = catalogue_cases.kept(path)
        sort = (case.cause, case.fix is not None)
        if path.stem not in LARGE:
            yield pytest.param(path, number, id=path.stem, marks=pytest.mark.soak if sort in known else ())
            known.add(sort)


@pytest.mark.parametrize(("path", "number"), [*set_ups()])
async def test_the_cause_and_the_fix_on_a_running_server(
    cluster: RemoteCluster, server: Seamark, path: Path, number: int
) -> None:
    async with Stage(cluster, path, number) as stage:
        case = stage.case
        await stage.carry_on()
        if case.healthy is not None:
            report = await stage.until(lambda report: report.healthy)
            assert [finding.cause for finding in report.findings] == []
            assert sorted(report.ready) == sorted(case.healthy["ready"] or [])
            return
        report = await stage.until(lambda report: report.cause is not None and report.cause.code.value == case.cause)
        assert report.cause is not None
        assert report.cause.code.value == case.cause, [each.cause for each in report.findings]
        if case.fix is not None:
            await _carry_out(stage, report, server)


async def _carry_out(stage: Stage, report: Report, server: Seamark) -> None:
    """Run the proposed commands as a person would, and see the endpoints appear."""
    assert report.cause is not None
    assert report.cause.fix.commands
    fix = stage.case.fix or {}
    for command in report.cause.fix.commands:
        text = command.text([f"--kubeconfig={server.kubeconfig}"])
        done = await asyncio.to_thread(
            subprocess.run, ["bash", "-c", text], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{text}: {done.stderr}"
    namespace, _, name = fix["service"].partition("/") if "service" in fix else (*stage.case.key[:1], "", "")
    key = (namespace, name or stage.case.key[1])
    code = report.cause.code
    after = await stage.until(
        lambda again: (
            all(each.code is not code for each in again.findings)
            and ("ready" not in fix or sorted(again.ready) == sorted(fix["ready"]))
        ),
        key,
    )
    assert all(each.code is not code for each in after.findings), after.findings
    if "ready" in fix:
        ready, ports = await stage.addresses(*key)
        assert sorted(ready) == sorted(fix["ready"])
        assert "port" not in fix or fix["port"] in ports


# --- the command line ------------------------------------------------------------------------------


class CommandLine(Program):
    """``seamark why`` and its relatives as processes of their own."""

    def __init__(self, server: Seamark, directory: Path) -> None:
        self._directory = directory
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("KUBE", "SEAMARK", "NO_COLOR"))}
        super().__init__(SEAMARK, {**kept, "KUBECONFIG": str(server.kubeconfig)})

    __call__ = Program.run

    def plugin_path(self) -> str:
        """A PATH with ``kubectl-why`` on it, made from the entry point as an installer would make it."""
        declared = tomllib.loads((TESTS.parent / "pyproject.toml").read_text())["project"]["scripts"]["kubectl-why"]
        module, _, function = declared.partition(":")
        script = self._directory / "bin" / "kubectl-why"
        script.parent.mkdir(exist_ok=True)
        script.write_text(f"#!{sys.executable}\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n")
        script.chmod(0o755)
        return f"{script.parent}{os.pathsep}{self.environment['PATH']}"


@pytest.fixture
def run(server: Seamark, tmp_path: Path) -> CommandLine:
    return CommandLine(server, tmp_path)


@pytest.fixture
async def shop(cluster: RemoteCluster) -> AsyncIterator[Stage]:
    """A namespace with one Service that is well and one that is not."""
    async with Stage(cluster, catalogue_cases.HERE / "healthy-neighbours-misspelt.yaml", next(_numbers)) as stage:
        await stage.until(lambda report: report.healthy)
        yield stage


async def test_exit_codes_and_outputs(shop: Stage, run: CommandLine) -> None:
    namespace = shop.case.key[0]
    healthy = run("why", "svc/web", "-n", namespace)
    assert (healthy.returncode, healthy.stderr) == (0, "")
    assert healthy.stdout == f"service/web in namespace {namespace}: healthy, 1 ready endpoint\n"
    broken = run("why", "service/broken", "-n", namespace)
    assert broken.returncode == 1
    assert broken.stdout.splitlines()[1].startswith("cause  ")
    for words in (("svc", "broken"), ("broken",), ("endpoints/broken",)):
        assert run("why", *words, "-n", namespace).stdout == broken.stdout
    told = json.loads(run("why", "svc/broken", "-n", namespace, "-o", "json").stdout)
    assert told["cause"]["code"] == "SelectorMatchesNothing"
    several = run("why", "-n", namespace)
    assert several.returncode == 1
    assert several.stdout.startswith(f"1 of 2 Services in namespace {namespace} needs attention")
    everything = json.loads(run("why", "-A", "-o", "json").stdout)
    assert everything["services"] == everything["healthy"] + len(everything["reports"])
    pod = run("why", "pod/web-1", "-n", namespace)
    assert pod.returncode == 0
    assert "gets traffic" in pod.stdout


async def test_could_not_look(run: CommandLine, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    nowhere.write_text("{}")
    for arguments in (
        ("why", "svc/web", "--kubeconfig", str(nowhere)),
        ("why", "svc/web", "--context", "不存在"),
        ("why", "ingress/web"),
        ("why", "svc/web", "-A"),
        ("why", "-f", str(tmp_path / "missing")),
        ("why", "svc/web", "--since", "soon"),
        ("audit", "--kubeconfig", str(nowhere)),
    ):
        done = run(*arguments)
        assert done.returncode == 2, arguments
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert done.stdout == ""


async def test_as_a_kubectl_plugin(shop: Stage, run: CommandLine) -> None:
    done = await asyncio.to_thread(
        subprocess.run,
        ["kubectl", "why", "svc/broken", "-n", shop.case.key[0]],
        capture_output=True,
        text=True,
        env={**run.environment, "PATH": run.plugin_path(), "HOME": str(Path.home())},
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout == run("why", "svc/broken", "-n", shop.case.key[0]).stdout


def on_a_terminal(arguments: list[str], environment: dict[str, str], typed: str = "") -> tuple[int, str]:
    """Run a command on a terminal of its own; its exit code, and what it showed there."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "seamark", *arguments]
    environment = {**environment, "TERM": "xterm"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        os.write(ours, typed.encode())
        shown = b""
        # Reading fails once the last who had the terminal open has gone.
        with contextlib.suppress(OSError):
            while piece := os.read(ours, 65536):
                shown += piece
    os.close(ours)
    return process.returncode, shown.decode()


async def test_colours_on_a_terminal_only(shop: Stage, run: CommandLine) -> None:
    asked = ["why", "svc/broken", "-n", shop.case.key[0]]
    _, coloured = await asyncio.to_thread(on_a_terminal, asked, run.environment)
    assert "\x1b[1;31m" in coloured
    _, plain = await asyncio.to_thread(on_a_terminal, asked, {**run.environment, "NO_COLOR": "1"})
    assert "\x1b" not in plain
    assert "\x1b" not in run(*asked).stdout


async def test_wide_characters_in_the_context(shop: Stage, run: CommandLine, server: Seamark, tmp_path: Path) -> None:
    """The name of a context may be anything; commands name it, and the table stays straight."""
    text = yaml.safe_load(server.kubeconfig.read_text())
    text["contexts"][0]["name"] = "生产环境"
    config = tmp_path / "kubeconfig"
    config.write_text(yaml.safe_dump(text, allow_unicode=True))
    done = run("why", "svc/broken", "-n", shop.case.key[0], "--context", "生产环境", KUBECONFIG=str(config))
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert all(width(line) <= 80 for line in lines if "kubectl" not in line)


async def test_dns(shop: Stage, run: CommandLine) -> None:
    namespace = shop.case.key[0]
    found = run("why", "dns", "web", "-n", namespace)
    assert found.returncode == 0
    assert f"web.{namespace}.svc.cluster.local." in found.stdout
    missing = run("why", "dns", "wbe", "-n", namespace)
    assert missing.returncode == 1
    assert "Service web" in " ".join(missing.stdout.split())
    told = json.loads(run("why", "dns", "wbe", "-n", namespace, "-o", "json").stdout)
    assert told["cause"]["code"] == "NameNotFound"


async def test_history(shop: Stage, run: CommandLine) -> None:
    namespace = shop.case.key[0]
    done = run("why", "svc/web", "-n", namespace, "--since", "1h")
    assert done.returncode == 0, done.stderr
    story = " ".join(done.stdout.split())
    assert "10.1.0.1" in story
    assert "because Pod web-1" in story
    done = run("why", "svc/web", "-n", namespace, "--since", "1h", "-o", "json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    came = [moment for moment in told["moments"] if moment["cause"].startswith("Pod web-1")]
    assert came
    assert all(moment["revision"] > 0 for moment in came)


async def test_manifests(run: CommandLine) -> None:
    manifest = (catalogue_cases.HERE / "selector-value-typo.yaml").read_text().split("---\n", 1)[1]
    done = run("why", "-f", "-", stdin=manifest)
    assert done.returncode == 1
    assert "SelectorValueTypo" in done.stdout
    assert "kubectl" not in done.stdout  # there is nothing yet to patch
    assert run("why", "-f", "-", stdin=manifest.replace("wbe", "web")).returncode == 0


async def test_watching(shop: Stage, run: CommandLine, cluster: RemoteCluster) -> None:
    """It speaks again when the answer changes, and only then."""
    namespace = shop.case.key[0]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "seamark", "why", "svc/web", "-n", namespace, "--watch",
        stdout=asyncio.subprocess.PIPE, env=run.environment,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        await _line_with(process.stdout, "healthy, 1 ready endpoint")
        status = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Paused"}]}}
        await cluster.patch(PODS, "web-1", status, namespace=namespace, subresource="status")
        await _line_with(process.stdout, "no ready endpoints")
        await _line_with(process.stdout, "PodNotReady")
    finally:
        process.terminate()
        await process.wait()


async def _line_with(stream: asyncio.StreamReader, words: str) -> None:
    while True:
        line = (await stream.readline()).decode()
        assert line, f"it ended without {words!r}"
        if words in line:
            return


async def test_audit_and_its_fix(shop: Stage, run: CommandLine, cluster: RemoteCluster) -> None:
    namespace = shop.case.key[0]
    clean = run("audit", "-n", namespace)
    assert clean.returncode == 0, clean.stdout
    orphan = {
        "metadata": {"name": "lost", "labels": {"kubernetes.io/service-name": "gone"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.9.9.9"]}],
    }
    await cluster.create(ENDPOINT_SLICES, orphan, namespace=namespace)
    told = run("audit", "-n", namespace)
    assert told.returncode == 1
    assert "would delete it" in " ".join(told.stdout.split())
    assert await _exists(cluster, namespace)  # it only says what it would do
    rows = json.loads(run("audit", "-n", namespace, "-o", "json").stdout)["problems"]
    assert [(row["defect"], row["name"], row["removable"]) for row in rows] == [("orphaned", "lost", True)]
    refused = run("audit", "-n", namespace, "--fix")
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert await _exists(cluster, namespace)
    fixed = run("audit", "-n", namespace, "--fix", "--yes")
    assert fixed.returncode == 0
    assert "deleted" in fixed.stdout
    assert not await _exists(cluster, namespace)


async def test_audit_asks_on_a_terminal(shop: Stage, run: CommandLine, cluster: RemoteCluster) -> None:
    namespace = shop.case.key[0]
    orphan = {"metadata": {"name": "lost", "labels": {"kubernetes.io/service-name": "gone"}}, "addressType": "IPv4"}
    await cluster.create(ENDPOINT_SLICES, {**orphan, "endpoints": []}, namespace=namespace)
    asked = ["audit", "-n", namespace, "--fix"]
    code, shown = await asyncio.to_thread(on_a_terminal, asked, run.environment, "n\n")
    assert "Delete 1 of these 1? [y/N]" in shown
    assert code == 1
    assert await _exists(cluster, namespace)
    code, _ = await asyncio.to_thread(on_a_terminal, asked, run.environment, "y\n")
    assert code == 0
    assert not await _exists(cluster, namespace)


async def _exists(cluster: RemoteCluster, namespace: str) -> bool:
    listing = await cluster.list(ENDPOINT_SLICES, namespace=namespace)
    return any(each["metadata"]["name"] == "lost" for each in listing.items)


async def test_scaled_to_zero_and_up_again(tmp_path: Path) -> None:
    """With a node that runs Pods, the fix of a Deployment without replicas brings endpoints by itself."""
    server = Seamark(tmp_path / "data", "--ephemeral", "--dns-port", "0", "--nodes", "1", verb="up")
    try:
        async with RemoteCluster(load(server.kubeconfig, environ={})) as cluster:
            case = catalogue_cases.load(catalogue_cases.HERE / "workload-scaled-to-zero.yaml", {"shop": "default"})
            for obj in case.objects:
                if obj["kind"] != "Node":
                    where = catalogue_cases.RESOURCES[obj["kind"]]
                    await cluster.create(where, obj, namespace="default")
            report = await look_at_service(cluster, case.key)
            assert report.cause is not None
            assert report.cause.code.value == "WorkloadScaledToZero"
            text = report.cause.fix.commands[0].text([f"--kubeconfig={server.kubeconfig}"])
            await asyncio.to_thread(subprocess.run, ["bash", "-c", text], check=True, capture_output=True)
            while not (await look_at_service(cluster, case.key, clock=IMPATIENT)).healthy:
                await asyncio.sleep(0.2)
    finally:
        server.stop()
