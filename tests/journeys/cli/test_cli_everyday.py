"""``seamark get``, ``apply`` and ``delete`` beside the real kubectl, on the same objects."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from commands import Command, Kubectl, running

from seamark.cli import main

OBJECTS = """\
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, labels: {app: web, note: "y"}}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}, {name: admin, port: 81}]
---
apiVersion: v1
kind: Service
metadata: {name: outside, namespace: shop, annotations: {text: "several\\nlines: <b>&</b>"}}
spec: {type: ExternalName, externalName: example.org}
---
apiVersion: v1
kind: Service
metadata: {name: open, namespace: shop}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: numbers, namespace: shop}
data: {a: "1", b: "true", c: "1e3", d: "2020-01-01", e: "~", f: "", g: " x", h: "日本", i: "a: b", j: "#"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "example/web:1"}]}
"""
AGE = re.compile(r"(?<= )\d+[smhd](\d+[smh])? *")


@pytest.fixture(scope="module")
def seamark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    command = Command(tmp_path_factory.mktemp("everyday"))
    with command.up("--nodes", "2"):
        command("apply", "-f", "-", stdin=OBJECTS)
        while "3/3" not in command("get", "deploy", "-n", "shop"):
            pass
        yield command


@pytest.fixture(scope="module")
def kubectl(seamark: Command) -> Kubectl:
    return Kubectl(seamark.data / "kubeconfig", seamark.home)


class Ended(NamedTuple):
    code: int
    out: str
    err: str


Here = Callable[..., Ended]


@pytest.fixture
def here(seamark: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """The same command line in this process: there are many of them below, and Python takes its time to start."""
    monkeypatch.setenv("KUBECONFIG", str(seamark.data / "kubeconfig"))

    def run(*arguments: str) -> Ended:
        code = main(arguments)
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    return run


class Inside:
    """``seamark …`` on one's own Seamark, run in this process; used as ``Command``, whose processes it saves."""

    def __init__(self, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._patch = patch
        self._capture = capture

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        self._patch.setattr(sys, "stdin", io.StringIO(stdin))
        code = main(arguments)
        said = self._capture.readouterr()
        return subprocess.CompletedProcess(arguments, code, said.out, said.err)

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def inside(seamark: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Inside:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    for name in ("HOME", "SEAMARK_DATA_DIR"):
        monkeypatch.setenv(name, seamark.environment[name])
    return Inside(monkeypatch, capsys)


def ageless(text: str) -> list[str]:
    """The lines without how old things are and the spaces that depend on it."""
    return [re.sub(r" +", "  ", AGE.sub("AGE  ", line)).rstrip() for line in text.splitlines()]


@pytest.mark.parametrize(
    "arguments",
    [
        "svc -n shop",
        "svc -n shop -o wide",
        "svc -A -o wide",
        "svc,endpoints,endpointslices -n shop",
        "all -n shop",
        "all -A",
        "pods -n shop -o wide",
        "pods -n shop -l app=nope",
        "nodes -o wide",
        "ns",
        "svc web open -n shop",
        "svc/web deploy/web -n shop",
        "secrets -n shop",
        "secrets -A",
        "svc nope web -n shop",
        "svc nope -n shop",
        "ipaddresses",
        "leases -n kube-node-lease",
        "replicasets.apps -n shop",
        "endpointslices.v1.discovery.k8s.io -n shop",
        "svc -A=false",
        "svc -n shop web web",
    ],
)
def test_tables_are_kubectls(kubectl: Kubectl, here: Here, arguments: str) -> None:
    theirs, ours = kubectl.run("get", *arguments.split()), here("get", *arguments.split())
    assert ageless(ours.out) == ageless(theirs.stdout)
    assert ours.err == theirs.stderr
    assert ours.code == theirs.returncode


@pytest.mark.parametrize(
    "arguments",
    [
        "svc web -n shop -o yaml",
        "svc,cm -n shop -o yaml",
        "svc -n shop -o name",
        "all -A -o name",
        "secrets -n shop -o name",
        "cm numbers -n shop -o yaml",
    ],
)
def test_objects_are_kubectls_to_the_byte(kubectl: Kubectl, here: Here, arguments: str) -> None:
    theirs, ours = kubectl.run("get", *arguments.split()), here("get", *arguments.split())
    assert ours.out == theirs.stdout
    assert ours.code == theirs.returncode == 0


@pytest.mark.parametrize("arguments", ["svc web -n shop", "svc web open -n shop", "svc -n shop", "secrets -n shop"])
def test_json_means_the_same_as_kubectls(kubectl: Kubectl, here: Here, arguments: str) -> None:
    theirs, ours = kubectl.run("get", *arguments.split(), "-o", "json"), here("get", *arguments.split(), "-o", "json")
    assert json.loads(ours.out) == json.loads(theirs.stdout)
    assert list(json.loads(ours.out)) == list(json.loads(theirs.stdout))
    assert ours.code == theirs.returncode == 0


def test_what_the_server_refuses_is_told_in_kubectls_words(kubectl: Kubectl, here: Here) -> None:
    ours = here("get", "pods", "-l", "a in (b")
    assert (ours.code, ours.out) == (1, "")
    assert ours.err.startswith("Error from server (BadRequest): ")
    assert ours.err.partition("unable to parse")[2] in kubectl.run("get", "pods", "-l", "a in (b").stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("nope", 1, 'the server doesn\'t have a resource type "nope"'),
        ("svc,,pods", 1, 'the server doesn\'t have a resource type ""'),
        ("svc/web/x", 2, "'svc/web/x' is not of the form KIND/NAME"),
        ("svc/", 2, "'svc/' is not of the form KIND/NAME"),
        ("pods web -A", 2, "objects are chosen by name or by -A and -l, not by both"),
        ("pods web -l a=b", 2, "objects are chosen by name or by -A and -l, not by both"),
    ],
)
def test_what_makes_no_sense_is_one_line(here: Here, arguments: str, code: int, said: str) -> None:
    ours = here("get", *arguments.split())
    assert (ours.code, ours.out) == (code, "")
    assert ours.err.startswith(f"seamark: {said}")
    assert ours.err.count("\n") == 1


def watching(command: list[str], environment: dict[str, str], change: threading.Event) -> list[str]:
    """The first lines of a watch, the last of them after the change."""
    lines = []
    with running(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if line.startswith("web "):
                change.set()
            if line.startswith("a-longer-name"):
                process.terminate()
    return lines


def test_a_watch_is_kubectls(seamark: Command, kubectl: Kubectl) -> None:
    """Both watch while a Service comes; neither may narrow its columns."""
    ask = ["get", "svc", "-n", "shop", "-w"]
    theirs_command = [*kubectl.words, "--kubeconfig", str(seamark.data / "kubeconfig"), *ask]
    ours_command = [sys.executable, "-m", "seamark", *ask]
    found: dict[str, list[str]] = {}
    begun = {"theirs": threading.Event(), "ours": threading.Event()}

    def follow(name: str, command: list[str]) -> None:
        found[name] = watching(command, seamark.environment, begun[name])

    threads = [
        threading.Thread(target=follow, args=("theirs", theirs_command)),
        threading.Thread(target=follow, args=("ours", ours_command)),
    ]
    for thread in threads:
        thread.start()
    for event in begun.values():
        event.wait()
    manifest = (
        "apiVersion: v1\nkind: Service\nmetadata: {name: a-longer-name-than-others}\nspec: {ports: [{port: 1}]}\n"
    )
    seamark("apply", "-n", "shop", "-f", "-", stdin=manifest)
    for thread in threads:
        thread.join()
    assert [ageless(line) for line in found["ours"]] == [ageless(line) for line in found["theirs"]]
    assert seamark("delete", "-n", "shop", "-f", "-", stdin=manifest).startswith('service "a-longer-name')


def test_a_watch_of_objects_and_of_what_is_not_there(seamark: Command) -> None:
    missing = seamark.run("get", "svc", "nope", "-w", "-n", "shop")
    assert (missing.returncode, missing.stderr) == (1, 'Error from server (NotFound): services "nope" not found\n')
    several = seamark.run("get", "svc,pods", "-w")
    assert several.returncode == 2
    assert "only one kind, or one object, can be watched at a time" in several.stderr
    with seamark.beside("get", "svc", "web", "-n", "shop", "-w", "-o", "name", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "service/web\n"


# --- writing ---------------------------------------------------------------------------------------

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: try}\nspec: {ports: [{port: 80}]}\n"


def test_apply_says_what_became_of_it(seamark: Command, tmp_path: Path) -> None:
    assert seamark("apply", "-f", "-", "--dry-run", "server", stdin=SERVICE) == "service/try created (server dry run)\n"
    (tmp_path / "a.yaml").write_text(SERVICE)
    (tmp_path / "b.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "try"}, "data": {"a": "b"}})
    )
    assert seamark("apply", "-f", str(tmp_path)) == "service/try created\nconfigmap/try created\n"
    assert seamark("apply", "-f", str(tmp_path)) == "service/try unchanged\nconfigmap/try unchanged\n"
    changed = SERVICE.replace("80", "81")
    assert seamark("apply", "-f", "-", stdin=changed) == "service/try configured\n"
    gone = seamark("delete", "-f", str(tmp_path))
    assert gone == 'service "try" deleted from default namespace\nconfigmap "try" deleted from default namespace\n'


def test_what_somebody_else_set_is_a_conflict_unless_forced(inside: Inside, kubectl: Kubectl) -> None:
    service = SERVICE.replace("try", "contested").replace("{port: 80}", "{port: 80, targetPort: 8}")
    kubectl("apply", "--server-side", "-f", "-", stdin=service)
    wanted = service.replace("targetPort: 8", "targetPort: 9")
    refused = inside.run("apply", "-f", "-", stdin=wanted)
    assert refused.returncode == 1
    assert refused.stderr.startswith('Error from server (Conflict): error when applying "STDIN": ')
    assert 'conflict with "kubectl"' in refused.stderr
    assert inside("apply", "-f", "-", "--force-conflicts", stdin=wanted) == "service/contested configured\n"
    inside("delete", "svc", "contested")


def test_one_bad_object_does_not_keep_the_others(inside: Inside) -> None:
    bad = "apiVersion: v1\nkind: Service\nmetadata: {name: bad_}\nspec: {ports: [{port: 0}]}\n"
    unknown = "apiVersion: nope/v1\nkind: Nope\nmetadata: {name: x}\n"
    typo = SERVICE.replace("try", "typo").replace("ports", "prots")
    done = inside.run("apply", "-f", "-", stdin="---\n".join([bad, unknown, typo, SERVICE.replace("try", "good")]))
    assert done.returncode == 1
    assert done.stdout == "service/good created\n"
    assert 'The Service "bad_" is invalid' in done.stderr
    assert 'no matches for kind "Nope" in version "nope/v1"' in done.stderr
    assert "prots" in done.stderr
    inside("delete", "svc/good")


def test_delete_waits_chooses_and_complains(inside: Inside) -> None:
    names = ["one", "two"]
    texts = [SERVICE.replace("name: try", f"name: {name}, labels: {{batch: x}}") for name in names]
    held = SERVICE.replace("Service", "ConfigMap").replace("spec: {ports: [{port: 80}]}", "")
    inside("apply", "-f", "-", stdin="---\n".join(texts))
    inside("apply", "-f", "-", stdin=held.replace("name: try", "name: held, finalizers: [example.org/wait]"))
    said = inside("delete", "svc", "-l", "batch=x")
    assert said == "".join(f'service "{name}" deleted from default namespace\n' for name in names)
    assert inside.run("get", "svc", *names).stdout == ""
    slow = inside.run("delete", "cm", "held", "--timeout", "0.2")
    assert (slow.returncode, slow.stdout) == (1, 'configmap "held" deleted from default namespace\n')
    assert "timed out waiting for configmap/held" in slow.stderr
    assert inside("delete", "cm", "held", "--wait=false").startswith('configmap "held" deleted')
    inside("apply", "-f", "-", "--force-conflicts", stdin=held.replace("name: try", "name: held, finalizers: []"))
    missing = inside.run("delete", "svc", "nope", "one")
    assert missing.returncode == 1
    assert missing.stderr.splitlines() == [
        'Error from server (NotFound): services "nope" not found',
        'Error from server (NotFound): services "one" not found',
    ]
    assert inside("delete", "svc", "nope", "--ignore-not-found") == ""
    for arguments, words in ((("svc",), "which ones? Give names"), ((), "what is to be deleted?")):
        wrong = inside.run("delete", *arguments)
        assert wrong.returncode == 2
        assert words in wrong.stderr


def test_delete_spares_what_was_not_clearly_meant(inside: Inside) -> None:
    """A name beside a selector or --all could mean either: kubectl takes it for a mistake, and so do we."""
    inside("apply", "-f", "-", stdin=SERVICE)
    for more in (("--all",), ("-l", "a=b"), ("-A",)):
        refused = inside.run("delete", "svc", "try", *more)
        assert refused.returncode == 2
        assert refused.stderr == "seamark: objects are chosen by name or by --all, -A and -l, not by both\n"
    tried = inside("delete", "svc", "try", "--dry-run", "server")
    assert tried == 'service "try" deleted (server dry run) from default namespace\n'
    assert inside("get", "svc", "try", "-o", "name") == "service/try\n"
    assert inside("delete", "svc", "try") == 'service "try" deleted from default namespace\n'
    assert inside("delete", "svc", "-l", "no=ne") == "No resources found\n"


def test_force_does_not_wait_and_says_so(inside: Inside) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: stuck}\nspec: {containers: [{name: a, image: b}]}\n"
    inside("apply", "-f", "-", stdin=pod)
    done = inside.run("delete", "pod", "stuck", "--force")
    assert (done.returncode, done.stdout) == (0, 'pod "stuck" force deleted from default namespace\n')
    assert done.stderr.startswith("Warning: Immediate deletion does not wait")
    assert inside.run("get", "pod", "stuck").returncode == 1


def test_names_may_stand_behind_flags(inside: Inside) -> None:
    assert inside("get", "svc", "-n", "shop", "web", "-o", "name", "open") == "service/web\nservice/open\n"


def test_a_closed_pipe_is_no_disaster(seamark: Command) -> None:
    command = f"{sys.executable} -m seamark get svc -A -o yaml | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=seamark.environment, check=True)
    assert done.stderr == ""
    # Whether the pipe is closed before everything is in it is up to the two of them.
    assert done.stdout in ("apiVersion: v1\n0\n", "apiVersion: v1\n141\n")


def test_nowhere_to_go(tmp_path: Path) -> None:
    done = Command(tmp_path).run("get", "svc")
    assert done.returncode == 1
    assert done.stderr.startswith("seamark: no cluster to talk to")
    assert done.stderr.endswith("or start one with `seamark up`\n")


ASKING = {
    **dict.fromkeys(
        ("get svc", "export", "resolve web", "port-forward svc/web 80", "forward", "run x -- y", "shell"), 1
    ),
    **dict.fromkeys(("why", "why svc/web", "why dns web", "doctor", "audit"), 2),
}


def test_ones_own_seamark_that_does_not_run(tmp_path: Path) -> None:
    command = Command(tmp_path)
    with command.up("--nodes", "0"):
        pass
    named, elsewhere = {"KUBECONFIG": str(command.data / "kubeconfig")}, {"SEAMARK_DATA_DIR": str(tmp_path / "other")}
    for words, code in ASKING.items():
        done = command.run(*words.split())
        assert done.returncode == code, words
        assert done.stderr.endswith(": Connection refused; start your Seamark with `seamark up`\n"), words
    assert command.run("get", "svc", **named).stderr.endswith("; start your Seamark with `seamark up`\n")
    for words in ("get svc", "why"):
        said = command.run(*words.split(), **named, **elsewhere).stderr
        assert said.endswith(f"; start your Seamark with `seamark up --data-dir {command.data}`\n")


def test_a_server_that_is_not_there(seamark: Command, tmp_path: Path) -> None:
    config = (seamark.data / "kubeconfig").read_text()
    away = tmp_path / "away"
    away.write_text(re.sub(r"server: \S+", "server: https://127.0.0.1:1", config))
    for command in (("get", "svc"), ("apply", "-f", "-"), ("delete", "svc", "web")):
        done = seamark.run(*command, "--kubeconfig", str(away), stdin=SERVICE)
        assert done.returncode == 1
        *told, failed = done.stderr.splitlines()
        assert failed == "seamark: cannot reach https://127.0.0.1:1: Connection refused"
        writes = command[0] != "get"
        assert told == ["seamark: writing to https://127.0.0.1:1 (context seamark)"] * writes
    missing = seamark.run("get", "svc", "--kubeconfig", "/does/not/exist")
    assert (missing.returncode, missing.stderr) == (1, "seamark: there is no kubeconfig at /does/not/exist\n")


# --- completion ------------------------------------------------------------------------------------

# What each shell is told to do to have a line completed; `{line}` is the line, `{script}` our script.
SHELLS = {
    "bash": "source {script}; COMP_LINE={line}; COMP_POINT=${{#COMP_LINE}}; COMP_TYPE=9; "
    '_python_argcomplete seamark; printf "%s\\n" "${{COMPREPLY[@]}}"',
    "fish": "source {script}; complete -C {line} | cut -f1",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_completions_work(seamark: Command, tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} on this machine")
    script = tmp_path / f"completion.{shell}"
    script.write_text(seamark("completion", shell))
    (tmp_path / "seamark").write_text(f'#!/bin/sh\nexec {sys.executable} -m seamark "$@"\n')
    (tmp_path / "seamark").chmod(0o755)
    environment = {**seamark.environment, "PATH": f"{tmp_path}:{seamark.environment['PATH']}"}

    def complete(line: str) -> list[str]:
        program = SHELLS[shell].format(script=script, line=f"'{line}'")
        done = subprocess.run([shell, "-c", program], capture_output=True, text=True, env=environment, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout.split()

    assert complete("seamark st") == ["status"]
    assert sorted(complete("seamark up --log-format ")) == ["json", "text"]
    assert complete("seamark get servicec") == ["servicecidrs"]
    assert complete("seamark get -n sh") == ["shop"]
    assert complete("seamark get -n shop svc ou") == ["outside"]
    assert complete("seamark get -n shop svc/ou") == ["svc/outside"]
    assert complete("seamark get -o wide ns sh") == ["shop"]
    assert complete("seamark why -n shop svc/ou") == ["svc/outside"]
    assert complete("seamark node stop node-2") == ["node-2"]
    assert complete(f"seamark apply --filename {tmp_path}/compl") == [str(script)]
