"""Identities by kubectl and by clients: tokens, certificates by request, and the configuration inside of a Pod."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import Kubectl
from seamark_process import Seamark, Start
from signing import KEY_PEM, pem, signing_request
from waiting import until

from seamark.kinds.core.automount import MOUNT_PATH


@pytest.fixture
def full(start: Start) -> Seamark:
    return start("--profile", "full")


@pytest.fixture
def kubectl(full: Seamark, make_kubectl: Callable[[Seamark], Kubectl]) -> Kubectl:
    return make_kubectl(full)


def whoami(kubectl: Kubectl, *options: str) -> Any:
    return json.loads(kubectl("auth", "whoami", "-o", "json", *options))["status"]["userInfo"]


def without_user(server: Seamark, place: Path) -> Path:
    """The kubeconfig without the admin's credentials."""
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"] = {}
    place.write_text(json.dumps(config))
    return place


def test_create_token(kubectl: Kubectl, full: Seamark, tmp_path: Path) -> None:
    kubectl("create", "serviceaccount", "robot")
    token = kubectl("create", "token", "robot", "--duration", "15m").strip()
    anonymous = Kubectl(without_user(full, tmp_path / "nobody"), tmp_path)
    assert whoami(anonymous, "--token", token)["username"] == "system:serviceaccount:default:robot"
    kubectl("delete", "serviceaccount", "robot")
    until(lambda: anonymous.run("auth", "whoami", "--token", token).returncode)


def test_certificate_approve(kubectl: Kubectl, full: Seamark, tmp_path: Path) -> None:
    asked = signing_request(pem("ann", ["readers"]), "kubernetes.io/kube-apiserver-client", ["client auth"], name="ann")
    whole = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", **asked}
    kubectl("apply", "-f", "-", stdin=json.dumps(whole))
    assert kubectl("get", "csr", "ann", "--no-headers").split()[-1] == "Pending"
    kubectl("certificate", "approve", "ann")
    until(lambda: kubectl("get", "csr", "ann", "--no-headers").split()[-1] == "Approved,Issued")
    certificate, key = tmp_path / "ann.crt", tmp_path / "ann.key"
    certificate.write_bytes(base64.b64decode(kubectl("get", "csr", "ann", "-o", "jsonpath={.status.certificate}")))
    key.write_bytes(KEY_PEM)
    anonymous = Kubectl(without_user(full, tmp_path / "nobody"), tmp_path)
    found = whoami(anonymous, f"--client-certificate={certificate}", f"--client-key={key}")
    assert (found["username"], found["groups"]) == ("ann", ["readers", "system:authenticated"])
    whole["metadata"] = {"name": "bob"}
    kubectl("apply", "-f", "-", stdin=json.dumps(whole))
    kubectl("certificate", "deny", "bob")
    assert kubectl("get", "csr", "bob", "--no-headers").split()[-1] == "Denied"


def test_a_client_in_a_pod(kubectl: Kubectl, full: Seamark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The official client, configured as in a Pod, from exactly what the Pod's volume is made of."""
    from kubernetes import client
    from kubernetes.config import incluster_config

    until(lambda: kubectl.run("get", "serviceaccount", "default").returncode == 0)
    kubectl("run", "p", "--image", "i")
    pod = json.loads(kubectl("get", "pod", "p", "-o", "json"))
    (mount,) = pod["spec"]["containers"][0]["volumeMounts"]
    assert mount["mountPath"] == MOUNT_PATH
    token, certificates, names = pod["spec"]["volumes"][0]["projected"]["sources"]
    (item,) = certificates["configMap"]["items"]
    bundle = kubectl("get", "configmap", certificates["configMap"]["name"], "-o", "json")
    (tmp_path / item["path"]).write_text(json.loads(bundle)["data"][item["key"]])
    (tmp_path / names["downwardAPI"]["items"][0]["path"]).write_text("default")
    seconds = token["serviceAccountToken"]["expirationSeconds"]
    bound = ("--bound-object-kind", "Pod", "--bound-object-name", "p", "--duration", f"{seconds}s")
    path = tmp_path / token["serviceAccountToken"]["path"]
    path.write_text(kubectl("create", "token", "default", *bound).strip())
    host, _, port = full.url.removeprefix("https://").rpartition(":")
    monkeypatch.setitem(os.environ, "KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setitem(os.environ, "KUBERNETES_SERVICE_PORT", port)
    configuration = client.Configuration()
    loader = incluster_config.InClusterConfigLoader(str(path), str(tmp_path / item["path"]))
    loader.load_and_set(configuration)
    with client.ApiClient(configuration) as inside:
        found = client.AuthenticationV1Api(inside).create_self_subject_review({}).status.user_info
        assert found.username == "system:serviceaccount:default:default"
        assert found.extra["authentication.kubernetes.io/pod-name"] == ["p"]
        kubectl("delete", "pod", "p", "--force", "--grace-period", "0")
        with pytest.raises(client.ApiException) as refused:
            client.AuthenticationV1Api(inside).create_self_subject_review({})
        assert refused.value.status == 401


def test_a_role_allows_exactly_what_it_says(kubectl: Kubectl, full: Seamark, tmp_path: Path) -> None:
    """One Role for one user, who comes by token, by a certificate that was asked for, and as whom the admin acts."""
    until(lambda: kubectl.run("get", "serviceaccount", "default").returncode == 0)
    kubectl("create", "namespace", "other")
    kubectl("create", "configmap", "c", "--from-literal=a=b")
    kubectl("create", "secret", "generic", "s", "--from-literal=a=b")
    kubectl("create", "serviceaccount", "robot")
    kubectl("create", "role", "reader", "--verb=get,list,watch,delete", "--resource=configmaps")
    kubectl("create", "role", "namer", "--verb=get", "--resource=secrets", "--resource-name=s")
    subjects = ("--user=ann", "--serviceaccount=default:robot")
    for role in ("reader", "namer"):
        kubectl("create", "rolebinding", role, f"--role={role}", *subjects)
    asked = signing_request(pem("ann", []), "kubernetes.io/kube-apiserver-client", ["client auth"], name="ann")
    whole = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", **asked}
    kubectl("apply", "-f", "-", stdin=json.dumps(whole))
    kubectl("certificate", "approve", "ann")
    issued = "jsonpath={.status.certificate}"
    until(lambda: kubectl("get", "csr", "ann", "-o", issued))
    certificate, key = tmp_path / "ann.crt", tmp_path / "ann.key"
    certificate.write_bytes(base64.b64decode(kubectl("get", "csr", "ann", "-o", issued)))
    key.write_bytes(KEY_PEM)
    anonymous = Kubectl(without_user(full, tmp_path / "nobody"), tmp_path)
    robot = "system:serviceaccount:default:robot"
    ways: list[tuple[Kubectl, list[str], str]] = [
        (anonymous, ["--token", kubectl("create", "token", "robot").strip()], robot),
        (anonymous, [f"--client-certificate={certificate}", f"--client-key={key}"], "ann"),
        (kubectl, ["--as", "ann"], "ann"),
        (kubectl, ["--as", robot], robot),
    ]
    for sender, options, name in ways:

        def refused(*command: str, sender: Kubectl = sender, options: list[str] = options, name: str = name) -> bool:
            done = sender.run(*command, *options)
            return bool(done.returncode) and f'User "{name}" cannot' in done.stderr

        assert "c" in sender("get", "configmaps", "-o", "name", *options)
        assert sender("get", "configmap", "c", "-o", "jsonpath={.data.a}", *options) == "b"
        assert sender("get", "secret", "s", "-o", "name", *options).strip() == "secret/s"
        assert refused("get", "secrets")
        assert refused("get", "secret", "t")
        assert refused("create", "configmap", "d")
        assert refused("get", "configmaps", "-n", "other")
        assert refused("get", "configmaps", "-A")
        assert refused("get", "nodes")
        assert sender("auth", "can-i", "delete", "configmap/c", *options).strip() == "yes"
        assert sender.run("auth", "can-i", "update", "configmap/c", *options).stdout.strip() == "no"
        rights = sender("auth", "can-i", "--list", "--no-headers", *options)
        assert any(
            line.split()[0] == "configmaps" and "[get list watch delete]" in line for line in rights.splitlines()
        )
        sender("delete", "configmap", "c", *options)
        kubectl("create", "configmap", "c", "--from-literal=a=b")
