"""What a person would have written to have an object: its manifest without what the cluster made or set.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from seamark.errors import Object
from seamark.kinds.wellknown import (
    ENDPOINTS_CONTROLLER,
    ENDPOINTS_MANAGED_BY_LABEL,
    JOB_NAME_LABEL,
    JOB_UID_LABEL,
    MIRROR_CONTROLLER,
    SLICE_CONTROLLER,
    SLICE_MANAGED_BY_LABEL,
)

# The objects of these kinds are reports, requests or reservations that every cluster makes for itself.
MADE_BY_THE_CLUSTER = frozenset(
    {
        "certificatesigningrequests",
        "componentstatuses",
        "controllerrevisions",
        "csinodes",
        "csistoragecapacities",
        "events",
        "ipaddresses",
        "leases",
        "nodes",
        "resourceslices",
        "volumeattachments",
    }
)

# These objects are in every cluster: (plural, name).
_IN_EVERY_CLUSTER = frozenset(
    {("namespaces", name) for name in ("default", "kube-system", "kube-public", "kube-node-lease")}
    | {("priorityclasses", name) for name in ("system-node-critical", "system-cluster-critical")}
    | {("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt"), ("servicecidrs", "kubernetes")}
    | {("configmaps", "extension-apiserver-authentication")}
)

# Services of the cluster's own parts, their Endpoints and their EndpointSlices: (namespace, name).
_OWN_SERVICES = (("default", "kubernetes"), ("kube-system", "kube-dns"))

# Labels and their values (any if there are none) of objects that servers and controllers make.
_MARKS: Mapping[str, Collection[str]] = {
    SLICE_MANAGED_BY_LABEL: (SLICE_CONTROLLER, MIRROR_CONTROLLER),
    ENDPOINTS_MANAGED_BY_LABEL: (ENDPOINTS_CONTROLLER,),
    "kubernetes.io/bootstrapping": (),
    "kube-aggregator.kubernetes.io/automanaged": (),
    "addonmanager.kubernetes.io/mode": (),
    "app.kubernetes.io/part-of": ("seamark",),
}

_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"

# Set by the server; a manifest that names them would be refused, or would fight with the cluster.
_METADATA_SET = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "selfLink",
    "ownerReferences",
)
_ANNOTATIONS_SET = frozenset(
    {
        _BOUND_BY_CONTROLLER,
        "pv.kubernetes.io/bind-completed",
        "volume.beta.kubernetes.io/storage-provisioner",
        "volume.kubernetes.io/storage-provisioner",
        "volume.kubernetes.io/selected-node",
        "kubernetes.io/service-account.uid",
        "deployment.kubernetes.io/revision",
        "deprecated.daemonset.template.generation",
        "endpoints.kubernetes.io/last-change-trigger-time",
    }
)
_FINALIZERS_SET = frozenset({"kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"})
_JOB_LABELS_SET = frozenset({JOB_NAME_LABEL, JOB_UID_LABEL, "job-name", "controller-uid"})


_KEPT_RIGHT = "apf.kubernetes.io/autoupdate-spec"  # on the FlowSchemas and levels that every cluster has


def manifest_of(plural: str, obj: Object) -> Object | None:
    """What a person would have written to have this object; None if the cluster made it."""
    meta = obj["metadata"]
    if _made_by_the_cluster(plural, meta):
        return None
    kept = {name: value for name, value in meta.items() if name not in _METADATA_SET}
    _keep(kept, "annotations", {k: v for k, v in kept.get("annotations", {}).items() if k not in _ANNOTATIONS_SET})
    _keep(kept, "finalizers", [name for name in kept.get("finalizers", ()) if name not in _FINALIZERS_SET])
    manifest = {**{name: value for name, value in obj.items() if name != "status"}, "metadata": kept}
    if plural in _CHANGES:
        _CHANGES[plural](manifest, meta)
    return manifest


def _keep(obj: Object, field: str, value: object) -> None:
    if value:
        obj[field] = value
    else:
        obj.pop(field, None)


def _made_by_the_cluster(plural: str, meta: Object) -> bool:
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    return (
        "deletionTimestamp" in meta
        or (plural, meta["name"]) in _IN_EVERY_CLUSTER
        or (meta.get("namespace"), meta["name"]) in _OWN_SERVICES
        or any(label in labels and (not values or labels[label] in values) for label, values in _MARKS.items())
        or (plural == "persistentvolumes" and _PROVISIONED_BY in annotations)
        or annotations.get(_KEPT_RIGHT) == "true"
        or any(owner.get("controller") for owner in meta.get("ownerReferences") or ())
    )


# --- what is left out of single kinds; each is given the manifest and the metadata as they were ----------------------


def _namespace(manifest: Object, meta: Object) -> None:
    manifest.pop("spec", None)  # holds only the finalizer that every namespace has


def _service(manifest: Object, meta: Object) -> None:
    """Without the addresses that its cluster gave it; node ports stay, as people rely on them."""
    spec = manifest.get("spec") or {}
    given = {"healthCheckNodePort", *(() if spec.get("clusterIP") == "None" else ("clusterIP", "clusterIPs"))}
    manifest["spec"] = {name: value for name, value in spec.items() if name not in given}


def _pod(manifest: Object, meta: Object) -> None:
    manifest["spec"] = {name: value for name, value in manifest["spec"].items() if name != "nodeName"}


def _job(manifest: Object, meta: Object) -> None:
    """Without the selector that was made from its uid."""
    spec = dict(manifest["spec"])
    if not spec.get("manualSelector"):
        spec.pop("selector", None)
        template = dict(spec["template"])
        template["metadata"] = _without_job_labels(template.get("metadata") or {})
        spec["template"] = template
        manifest["metadata"] = _without_job_labels(manifest["metadata"])
    manifest["spec"] = spec


def _without_job_labels(meta: Object) -> Object:
    kept = dict(meta)
    labels = {name: value for name, value in (meta.get("labels") or {}).items() if name not in _JOB_LABELS_SET}
    _keep(kept, "labels", labels)
    return kept


def _claim(manifest: Object, meta: Object) -> None:
    """Without the volume, unless a person chose it."""
    if _BOUND_BY_CONTROLLER in (meta.get("annotations") or {}):
        manifest["spec"] = {name: value for name, value in manifest["spec"].items() if name != "volumeName"}


def _volume(manifest: Object, meta: Object) -> None:
    """Without the claim; one that a person chose is kept by name, as it will be another object."""
    spec = dict(manifest["spec"])
    claim = spec.pop("claimRef", None)
    if claim and _BOUND_BY_CONTROLLER not in (meta.get("annotations") or {}):
        spec["claimRef"] = {name: value for name, value in claim.items() if name not in ("uid", "resourceVersion")}
    manifest["spec"] = spec


def _secret(manifest: Object, meta: Object) -> None:
    """A ServiceAccount's token is good in the cluster that made it; another one makes its own."""
    if manifest.get("type") == "kubernetes.io/service-account-token":
        manifest.pop("data", None)


_CHANGES: Mapping[str, Callable[[Object, Object], None]] = {
    "namespaces": _namespace,
    "services": _service,
    "pods": _pod,
    "jobs": _job,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    "secrets": _secret,
}
