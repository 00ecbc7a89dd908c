"""What the server refuses, in kubectl's words; and where a cluster is looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from seamark import errors
from seamark.cli.clusters import default_kubeconfig, refusal
from seamark.errors import Cause


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
