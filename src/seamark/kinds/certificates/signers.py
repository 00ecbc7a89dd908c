"""The signers of a cluster, and which requests each of them accepts.

kubernetes.io/kube-apiserver-client          clients of the API; never approved by itself
kubernetes.io/kube-apiserver-client-kubelet  kubelets as clients of the API
kubernetes.io/kubelet-serving                what clients of a kubelet see
kubernetes.io/legacy-unknown                 anything; only in objects of earlier versions
"""

from __future__ import annotations

from collections.abc import Sequence

from seamark.kinds.certificates.pkcs10 import WantedCertificate

CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING = "kubernetes.io/kubelet-serving"
LEGACY = "kubernetes.io/legacy-unknown"
SIGNERS = frozenset({CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY})

MASTERS = "system:masters"
_NODES = "system:nodes"
_NODE = "system:node:"
_OPTIONAL = ("digital signature", "key encipherment")


def mistake(signer: str, wanted: WantedCertificate, usages: Sequence[str]) -> str:
    """Why one of our signers does not sign a request; empty if it does."""
    if signer == CLIENT:
        return _client_mistake(usages)
    if signer == KUBELET_CLIENT:
        return _node_mistake(wanted) or _names_mistake(wanted) or _usages_mistake(usages, "client auth")
    if signer == KUBELET_SERVING:
        return _node_mistake(wanted) or _serving_mistake(wanted) or _usages_mistake(usages, "server auth")
    return ""


def _client_mistake(usages: Sequence[str]) -> str:
    for usage in usages:
        if usage not in (*_OPTIONAL, "client auth"):
            return f"invalid usage for client certificate: {usage}"
    return "" if "client auth" in usages else "missing required usage for client certificate: client auth"


def _node_mistake(wanted: WantedCertificate) -> str:
    if wanted.organizations != (_NODES,):
        return "subject organization is not system:nodes"
    if not wanted.common_name.startswith(_NODE):
        return "subject common name does not begin with system:node:"
    return ""


def _names_mistake(wanted: WantedCertificate) -> str:
    for values, word in (
        (wanted.dns_names, "DNS"),
        (wanted.emails, "Email"),
        (wanted.addresses, "IP"),
        (wanted.uris, "URI"),
    ):
        if values:
            return f"{word} subjectAltNames are not allowed"
    return ""


def _serving_mistake(wanted: WantedCertificate) -> str:
    if not wanted.dns_names and not wanted.addresses:
        return "DNS or IP subjectAltName is required"
    if wanted.emails:
        return "Email subjectAltNames are not allowed"
    return "URI subjectAltNames are not allowed" if wanted.uris else ""


def _usages_mistake(usages: Sequence[str], purpose: str) -> str:
    required = ["digital signature", "key encipherment", purpose]
    asked = set(usages)
    if asked in (set(required), {purpose, "digital signature"}):
        return ""
    return f"usages did not match [{' '.join(sorted(required))}]"
