"""The directory for KUBEBUILDER_ASSETS, used as envtest uses it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from envtest_control_plane import ControlPlane
from waiting import until

VERSION = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [VERSION],
    },
}
POD = {"metadata": {"name": "one"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMESPACE = "/api/v1/namespaces/default"


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("envtest") / "an directory"
    command = [sys.executable, "-m", "seamark", "envtest-assets", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"export KUBEBUILDER_ASSETS='{directory}'\n"
    return directory


def test_a_suite_of_envtest(assets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    plane = ControlPlane(assets, **{"feature-gates": "Something=true"}).start()
    admin = plane.user("default", "system:masters")

    # envtest creates the definitions, then polls discovery until it has them.
    assert admin.call("POST", DEFINITIONS, DEFINITION)[0] == 201
    group = "/apis/example.com/v1"
    until(lambda: any(each["name"] == "widgets" for each in admin.call("GET", group)[1].get("resources", ())))
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one", "finalizers": ["a.b/c"]}}
    assert admin.call("POST", "/apis/example.com/v1/namespaces/default/widgets", widget)[0] == 201

    # Without a ServiceAccount, because nothing makes one here; and nothing acts on what is there.
    assert admin.call("POST", f"{NAMESPACE}/pods", POD)[0] == 201
    assert admin.call("GET", f"{NAMESPACE}/serviceaccounts")[1]["items"] == []
    assert admin.call("GET", f"{NAMESPACE}/services/kubernetes")[1]["spec"]["clusterIP"] == "10.0.0.1"

    # Users are limited by roles; tokens are of the issuer that envtest names, and are believed.
    guest = plane.user("guest", "team")
    assert guest.call("GET", f"{NAMESPACE}/pods")[0] == 403
    assert admin.call("POST", f"{NAMESPACE}/serviceaccounts", {"metadata": {"name": "robot"}})[0] == 201
    token = admin.call("POST", f"{NAMESPACE}/serviceaccounts/robot/token", {"spec": {}})[1]["status"]["token"]
    review = "/apis/authentication.k8s.io/v1/tokenreviews"
    reviewed = admin.call("POST", review, {"spec": {"token": token}})[1]["status"]
    assert reviewed["user"]["username"] == "system:serviceaccount:default:robot"

    assert plane.stop() == [0, 0]
    assert "--feature-gates" in plane.log
    assert not os.listdir(tmp_path)


def test_control_planes_side_by_side(assets: Path) -> None:
    planes = [ControlPlane(assets) for _ in range(3)]
    starting = [threading.Thread(target=plane.start) for plane in planes]
    for thread in starting:
        thread.start()
    for thread in starting:
        thread.join()
    for number, plane in enumerate(planes):
        name = {"metadata": {"name": f"only-{number}"}}
        assert plane.user("default", "system:masters").call("POST", "/api/v1/namespaces", name)[0] == 201
    for number, plane in enumerate(planes):
        listed = plane.user("default", "system:masters").call("GET", "/api/v1/namespaces")[1]["items"]
        found = [each["metadata"]["name"] for each in listed if each["metadata"]["name"].startswith("only-")]
        assert found == [f"only-{number}"]
    for plane in planes:
        assert plane.stop() == [0, 0]


def test_controllers_if_the_environment_asks_for_them(assets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEAMARK_ENVTEST_CONTROLLERS", "true")
    plane = ControlPlane(assets).start()
    admin = plane.user("default", "system:masters")
    assert admin.call("POST", f"{NAMESPACE}/pods", POD)[0] == 201
    until(lambda: admin.call("GET", f"{NAMESPACE}/pods/one")[1]["status"]["phase"] == "Running")
    assert plane.stop() == [0, 0]


def test_a_mistake_is_one_line(assets: Path, tmp_path: Path) -> None:
    command = [assets / "kube-apiserver", f"--cert-dir={tmp_path}", "--client-ca-file=/nowhere", "--secure-port=0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "seamark: cannot serve with /nowhere: No such file or directory\n",
    )
