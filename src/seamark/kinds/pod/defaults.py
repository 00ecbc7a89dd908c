"""Defaults of a PodSpec.

``default_spec`` is for Pods and for the templates of workloads; ``default_pod`` fills in what Kubernetes fills in for
Pods only, so that a template stays as its author wrote it.
"""

from __future__ import annotations

import re
from typing import Any

from seamark.errors import Object
from seamark.kinds.pod.resources import default_pod_resources, round_up
from seamark.remembering import remembered

_DOMAIN_PART = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_image = re.compile(
    rf"(?:{_DOMAIN}/)?{_PATH_PART}(?:/{_PATH_PART})*"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
_identifier = re.compile("[a-f0-9]{64}")


@remembered(4096)
def pull_policy(image: str) -> str:
    """Always for the tag ``latest``, which is the default; IfNotPresent for another tag, a digest or a bad name."""
    parts = _image.fullmatch(image)
    if parts is None or _identifier.fullmatch(image):
        return "IfNotPresent"
    tag = parts["tag"] or ("" if parts["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def default_spec(spec: Object) -> None:
    """Fill in a PodSpec, in a Pod or in a template."""
    if not spec.get("restartPolicy"):
        spec["restartPolicy"] = "Always"
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    if not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirst"
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if not spec.get("schedulerName"):
        spec["schedulerName"] = "default-scheduler"
    # serviceAccount is the old name of serviceAccountName, which wins; both get the same value.
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in spec.get("containers") or ():
        _container(container)
    for container in spec.get("initContainers") or ():
        _container(container)
    for container in spec.get("ephemeralContainers") or ():
        _container(container)
    for volume in spec.get("volumes") or ():
        _volume(volume)
    for field in ("overhead",):
        if spec.get(field):
            round_up(spec[field])


def default_pod(spec: Object) -> None:
    """Fill in what only Pods get, after :func:`default_spec`."""
    host_network = spec.get("hostNetwork")
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            resources = container.get("resources")
            if resources and (limits := resources.get("limits")):
                resources["requests"] = {**limits, **(resources.get("requests") or {})}
            if host_network:
                for port in container.get("ports") or ():
                    if not port.get("hostPort") and port.get("containerPort"):
                        port["hostPort"] = port["containerPort"]
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    if spec.get("resources"):
        default_pod_resources(spec)


def _container(container: Object) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image", ""))
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    for port in container.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in container.get("env") or ():
        source = variable.get("valueFrom")
        if source:
            _field_reference(source)
            if (key := source.get("fileKeyRef")) is not None:
                key.setdefault("optional", False)
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := container.get(field)) is not None:
            _probe(probe)
    if lifecycle := container.get("lifecycle"):
        for field in ("postStart", "preStop"):
            if handler := lifecycle.get(field):
                _http(handler)
    if resources := container.get("resources"):
        for field in ("limits", "requests"):
            if resources.get(field):
                round_up(resources[field])


_PROBE_DEFAULTS = (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3))


def _probe(probe: Object) -> None:
    for field, value in _PROBE_DEFAULTS:
        if not probe.get(field):
            probe[field] = value
    _http(probe)
    if (grpc := probe.get("grpc")) is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _http(handler: Object) -> None:
    if (action := handler.get("httpGet")) is not None:
        if not action.get("path"):
            action["path"] = "/"
        if not action.get("scheme"):
            action["scheme"] = "HTTP"


def _field_reference(source: Object) -> None:
    reference = source.get("fieldRef")
    if reference is not None and not reference.get("apiVersion"):
        reference["apiVersion"] = "v1"


# Volume source → the defaults of its fields.
VOLUME_DEFAULTS: dict[str, dict[str, Any]] = {
    "secret": {"defaultMode": 0o644},
    "configMap": {"defaultMode": 0o644},
    "downwardAPI": {"defaultMode": 0o644},
    "projected": {"defaultMode": 0o644},
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def _volume(volume: Object) -> None:
    sources = [field for field in volume if field != "name"]
    if not sources:
        volume["emptyDir"] = {}
        return
    for field in sources:
        source = volume[field]
        for key, value in VOLUME_DEFAULTS.get(field, {}).items():
            source.setdefault(key, value)
        if field == "downwardAPI":
            _downward_items(source)
        elif field == "projected":
            for projection in source.get("sources") or ():
                _projection(projection)
        elif field == "image" and not source.get("pullPolicy"):
            source["pullPolicy"] = pull_policy(source.get("reference", ""))
        elif field == "ephemeral" and (template := source.get("volumeClaimTemplate")) is not None:
            default_claim(template.setdefault("spec", {}))


def _downward_items(source: Object) -> None:
    for item in source.get("items") or ():
        _field_reference(item)


def _projection(projection: Object) -> None:
    if (downward := projection.get("downwardAPI")) is not None:
        _downward_items(downward)
    if (token := projection.get("serviceAccountToken")) is not None:
        token.setdefault("expirationSeconds", 3600)
    if (certificate := projection.get("podCertificate")) is not None:
        certificate.setdefault("maxExpirationSeconds", 86400)


def default_claim(spec: Object) -> None:
    """Fill in a PersistentVolumeClaim's spec, in an ephemeral volume or a StatefulSet's template."""
    spec.setdefault("volumeMode", "Filesystem")
    resources = spec.get("resources") or {}
    for field in ("limits", "requests"):
        if resources.get(field):
            round_up(resources[field])
