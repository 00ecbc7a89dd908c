"""Admission of Pods by their ServiceAccount: every Pod has one, and a token of it in every container.

A Pod that names none gets ``default``.  Unless the Pod or the ServiceAccount says otherwise, a volume with a token, the
CA certificate and the name of the namespace is mounted where clients in a cluster look for them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from seamark.errors import Object
from seamark.kinds.admission import Awaited, Plugin, Request
from seamark.kinds.core.tokenrequest import WARNED_SECONDS
from seamark.kinds.resource import PODS, SERVICE_ACCOUNTS

MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
VOLUME = "kube-api-access-"
DEFAULT = "default"
# A new namespace has no ``default`` ServiceAccount yet: how long a Pod waits for it.  Kubernetes waits one to two
# seconds, which a busy machine with a slow disk needs longer than; only where no controller makes one does it matter.
DEFAULT_SECONDS = 10.0
_MIRROR = "kubernetes.io/config.mirror"
_ENFORCE = "kubernetes.io/enforce-mountable-secrets"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_NOT = "is not allowed because service account"


class ServiceAccounts(Plugin):
    """Gives Pods their ServiceAccount and its token; refuses a Pod whose ServiceAccount is missing."""

    resources = frozenset({PODS})

    def __init__(self) -> None:
        self._random = random.Random()

    def awaits(self, request: Request) -> Awaited | None:
        name = _account_of(request.obj)
        if _mirrors(request.obj):
            return None
        return Awaited(SERVICE_ACCOUNTS, name, request.namespace, DEFAULT_SECONDS if name == DEFAULT else 0.0)

    def mutate(self, request: Request) -> None:
        pod = request.obj
        spec, name, namespace = pod["spec"], _account_of(pod), request.namespace
        if _mirrors(pod):
            if sentence := mirror_mistake(spec):
                raise request.forbidden(sentence)
            return
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = request.others.get(SERVICE_ACCOUNTS, name, namespace)
        if account is None:
            place = f"{namespace}/{name}"
            raise request.forbidden(f'error looking up service account {place}: serviceaccount "{name}" not found')
        if mounts_token(spec, account):
            suffix = "".join(self._random.choices(_LETTERS, k=5))
            mount_token(spec, VOLUME + suffix)
        if account.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [
                {"name": each["name"]} if each.get("name") else {} for each in account["imagePullSecrets"]
            ]
        if _enforces(account) and (sentence := secret_mistake(spec, account)):
            raise request.forbidden(sentence)


def _account_of(pod: Object) -> str:
    return pod["spec"].get("serviceAccountName") or DEFAULT


def _mirrors(pod: Object) -> bool:
    """Whether the Pod only shows one that a kubelet runs from a file; such a Pod must stay as it is."""
    return _MIRROR in (pod["metadata"].get("annotations") or {})


def _enforces(account: Object) -> bool:
    """Whether Pods may use only the Secrets that the ServiceAccount lists."""
    annotations = account["metadata"].get("annotations") or {}
    return annotations.get(_ENFORCE) in ("1", "t", "T", "true", "TRUE", "True")


def mounts_token(spec: Object, account: Object) -> bool:
    """Whether the Pod is given a token: its own word counts more than its ServiceAccount's."""
    for said in (spec, account):
        if (wanted := said.get("automountServiceAccountToken")) is not None:
            return bool(wanted)
    return True


def mount_token(spec: Object, name: str) -> None:
    """Mount the token's volume in every container that has nothing at its path; ``name`` is that of a new volume."""
    volumes = spec.get("volumes") or []
    names = [each.get("name", "") for each in volumes if each.get("projected")]
    held = [each for each in names if each.startswith(VOLUME)]
    mount = {"name": held[0] if held else name, "readOnly": True, "mountPath": MOUNT_PATH}
    needed = False
    for container in _containers(spec):
        mounts = container.get("volumeMounts") or []
        if all(each.get("mountPath") != MOUNT_PATH for each in mounts):
            container["volumeMounts"] = [*mounts, dict(mount)]
            needed = True
    if needed and not held:
        spec["volumes"] = [*volumes, token_volume(name)]


def _containers(spec: Object) -> Iterator[Object]:
    for field in ("initContainers", "containers"):
        yield from spec.get(field) or ()


def token_volume(name: str) -> Object:
    """The volume with a token, the CA certificate and the name of the namespace."""
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "name": name,
        "projected": {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": WARNED_SECONDS, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [namespace]}},
            ],
            "defaultMode": 0o644,
        },
    }


TOKEN_PROJECTION = token_volume("")["projected"]


def mirror_mistake(spec: Object) -> str:
    """Why a mirror Pod is refused; empty if it is not."""
    if spec.get("serviceAccountName"):
        return "a mirror pod may not reference service accounts"
    for volume in spec.get("volumes") or ():
        if "secret" in volume:
            return "a mirror pod may not reference secrets"
        for source in (volume.get("projected") or {}).get("sources") or ():
            if "serviceAccountToken" in source:
                return "a mirror pod may not use ServiceAccountToken volume projections"
    return ""


def secret_mistake(spec: Object, account: Object) -> str:
    """Which Secret a Pod uses although its ServiceAccount, which is to be asked, does not list it; empty if none."""
    name = account["metadata"]["name"]
    listed = {each.get("name") for each in account.get("secrets") or ()}
    for volume in spec.get("volumes") or ():
        secret = (volume.get("secret") or {}).get("secretName", "")
        if volume.get("secret") and secret not in listed:
            return f'volume with secret.secretName="{secret}" {_NOT} {name} does not reference that secret'
    for word, field in (("init container", "initContainers"), ("container", "containers")):
        for container in spec.get(field) or ():
            for variable in container.get("env") or ():
                reference = (variable.get("valueFrom") or {}).get("secretKeyRef")
                if reference and reference.get("name") not in listed:
                    where = f"{word} {container.get('name', '')} with envVar {variable.get('name', '')} referencing"
                    used = f'secret.secretName="{reference.get("name", "")}"'
                    return f"{where} {used} {_NOT} {name} does not reference that secret"
    pulled = {each.get("name") for each in account.get("imagePullSecrets") or ()}
    for i, each in enumerate(spec.get("imagePullSecrets") or ()):
        if each.get("name") not in pulled:
            used = f'imagePullSecrets[{i}].name="{each.get("name", "")}"'
            return f"{used} {_NOT} {name} does not reference that imagePullSecret"
    return ""
