"""What the server refuses, in kubectl's words; and where a cluster is looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from seamark import errors
from seamark.cli.asking import audit
from seamark.cli.clusters import connection_of, default_kubeconfig, kubeconfig_of, refusal, tell_writes
from seamark.cli.failure import Failure
from seamark.config import ClusterSettings
from seamark.errors import Cause
from seamark.presence import RUNNING


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (errors.NotFound('services "a" not found'), 'Error from server (NotFound): services "a" not found'),
        (errors.ApiError("odd", code=418), "Error from server: odd"),
        (
            errors.Invalid(
                "long",
                details={"kind": "Service", "name": "a"},
                causes=[Cause(field="spec.ports", message="Required value")],
            ),
            'The Service "a" is invalid: spec.ports: Required value',
        ),
        (
            errors.Invalid(
                "long",
                details={"kind": "Pod", "name": "a"},
                causes=[
                    Cause(field="x", message="bad"),
                    Cause(field="y", message="worse"),
                    Cause(field="x", message="bad"),
                ],
            ),
            'The Pod "a" is invalid: \n* x: bad\n* y: worse',
        ),
        (errors.Invalid("it is wrong"), "The request is invalid: it is wrong"),
        (errors.Invalid("w", causes=[Cause(message="alone")]), "The request is invalid: alone"),
        (errors.Invalid("w", details={"kind": "Pod", "name": "a"}), 'The Pod "a" is invalid'),
    ],
)
def test_refusals_are_told_as_kubectl_tells_them(error: errors.ApiError, line: str) -> None:
    assert refusal(error).line == line
    assert refusal(error).code == 1


def test_what_never_came_to_an_answer_is_ours_to_tell() -> None:
    error = errors.ServiceUnavailable("cannot reach https://x")
    error.__cause__ = OSError("refused")
    assert refusal(error).line == "seamark: cannot reach https://x"


def test_a_seamark_is_used_only_if_nothing_else_is_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, data = tmp_path / "home", tmp_path / "data"
    monkeypatch.setenv("SEAMARK_DATA_DIR", str(data))
    assert default_kubeconfig({}, home) is None
    data.mkdir()
    (data / "kubeconfig").touch()
    assert default_kubeconfig({}, home) == data / "kubeconfig"
    assert default_kubeconfig({"KUBECONFIG": "/elsewhere"}, home) is None
    assert default_kubeconfig({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, home) is None
    (home / ".kube").mkdir(parents=True)
    (home / ".kube" / "config").touch()
    assert default_kubeconfig({}, home) is None


KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{server}"}}}}]
contexts: [{{name: production, context: {{cluster: c, user: ""}}}}]
current-context: production
"""


def test_long_running_verbs_find_the_seamark_of_this_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SEAMARK_DATA_DIR", str(tmp_path))
    with pytest.raises(Failure, match="or start one with `seamark up`"):
        connection_of(ClusterSettings())
    (tmp_path / "kubeconfig").write_text(KUBECONFIG.format(server="http://127.0.0.1:1"))
    assert kubeconfig_of(ClusterSettings()) == tmp_path / "kubeconfig"
    assert connection_of(ClusterSettings()).server == "http://127.0.0.1:1"
    assert kubeconfig_of(ClusterSettings(kubeconfig="/elsewhere")) == "/elsewhere"


def test_a_foreign_cluster_is_named_before_it_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own, foreign = tmp_path / "own", tmp_path / "foreign"
    for directory, server in ((own, "http://127.0.0.1:1"), (foreign, "http://10.0.0.1:1")):
        directory.mkdir()
        (directory / "kubeconfig").write_text(KUBECONFIG.format(server=server))
    monkeypatch.setenv("SEAMARK_DATA_DIR", str(own))
    ours, theirs = (ClusterSettings(kubeconfig=str(each / "kubeconfig")) for each in (own, foreign))
    (own / RUNNING).touch()
    tell_writes(connection_of(ours), ours)
    assert capsys.readouterr().err == ""
    tell_writes(connection_of(theirs), theirs)
    assert capsys.readouterr().err == "seamark: writing to http://10.0.0.1:1 (context production)\n"
    (foreign / RUNNING).touch()  # the data directory of another Seamark
    tell_writes(connection_of(theirs), theirs)
    assert capsys.readouterr().err == ""


def test_audit_deletes_nothing_that_it_could_not_ask_about() -> None:
    with pytest.raises(Failure, match="add --yes") as refused:
        audit.main(["--fix"])
    assert refused.value.code == 2
