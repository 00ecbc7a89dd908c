"""What the user of a node (``system:node:NAME``) may do: what the role of nodes says, limited to its own objects.

A node reads and writes its own Node, Lease and CSINode, and reads the Secrets, ConfigMaps and claims that the Pods
bound to it use.  Everything else in the role of nodes holds as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from seamark.api.authorization import ALLOWED, DENIED, Attributes, Decision, User
from seamark.api.rbac.roles import NODE_RULES
from seamark.api.rbac.rules import Held, Rule
from seamark.api.state.cache import Cache
from seamark.errors import Object
from seamark.kinds.resource import PODS

NODES_GROUP = "system:nodes"
PREFIX = "system:node:"
LEASE_NAMESPACE = "kube-node-lease"

_READ = ("get", "list", "watch")
_HELD = tuple(map(Held, NODE_RULES))
_USED_BY_PODS = ("secrets", "configmaps", "persistentvolumeclaims", "serviceaccounts")


class NodeRights:
    """Decides by the Pods in a server's cache."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    @staticmethod
    def name_of(user: User) -> str:
        """The node whose user this is; empty for all others."""
        if user.name.startswith(PREFIX) and NODES_GROUP in user.groups:
            return user.name.removeprefix(PREFIX)
        return ""

    def decide(self, node: str, asked: Attributes) -> Decision:
        if asked.path or not _in_role(asked):
            return DENIED
        kind = (asked.group, asked.resource)
        if kind in (("", "nodes"), ("storage.k8s.io", "csinodes")):
            return self._own(node, asked)
        if kind == ("coordination.k8s.io", "leases"):
            if asked.namespace != LEASE_NAMESPACE:
                return _refused(f'can only access leases in the "{LEASE_NAMESPACE}" system namespace')
            return self._own(node, asked)
        if asked.group == "" and asked.resource in _USED_BY_PODS:
            return self._used(node, asked)
        return ALLOWED

    @staticmethod
    def _own(node: str, asked: Attributes) -> Decision:
        if asked.name == node or (asked.verb == "create" and not asked.name):
            return ALLOWED
        if asked.resource == "leases":
            return _refused("can only access node lease with the same name as the requesting node")
        if asked.resource == "csinodes":
            return _refused("can only access CSINode with the same name as the requesting node")
        doing = "read" if asked.verb in _READ else "modify" if asked.verb != "delete" else "delete"
        which = f"'{asked.name}'" if asked.name else "all nodes"
        return _refused(f"node '{node}' cannot {doing} {which}, only its own Node object")

    def _used(self, node: str, asked: Attributes) -> Decision:
        if not asked.name:
            return _refused("No Object name found")
        for pod in self._pods(node, asked.namespace, asked.name):
            if asked.name in _names(pod["spec"], asked.resource):
                return ALLOWED
        return _refused(f"no relationship found between node '{node}' and this object")

    def _pods(self, node: str, namespace: str, word: str) -> Iterator[Object]:
        """The Pods of a node that contain a word; only those are decoded."""
        bound, named = f'"nodeName":"{node}"'.encode(), f'"{word}"'.encode()
        for entry in self._cache.of(PODS).of_namespace(namespace):
            if bound in entry.tail and named in entry.tail:
                pod = entry.decode()
                if pod["spec"].get("nodeName") == node:
                    yield pod


def _refused(reason: str) -> Decision:
    return Decision(False, f"node: {reason}")


def _in_role(asked: Attributes) -> bool:
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    single = Rule((asked.verb,), (asked.group,), (resource,))
    return any(rule.covers(single) for rule in _HELD)


def _names(spec: Object, resource: str) -> Iterator[str]:
    """The names of the objects of one kind that a Pod uses."""
    if resource == "serviceaccounts":
        yield spec.get("serviceAccountName", "")
    if resource == "secrets":
        yield from (each.get("name", "") for each in spec.get("imagePullSecrets") or ())
    word = {"secrets": "secret", "configmaps": "configMap"}.get(resource)
    for volume in spec.get("volumes") or ():
        if resource == "persistentvolumeclaims":
            yield (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
        elif word:
            source = volume.get(word) or {}
            yield source.get("secretName") or source.get("name", "")
            for projected in (volume.get("projected") or {}).get("sources") or ():
                yield (projected.get(word) or {}).get("name", "")
    if word:
        for group in ("initContainers", "containers", "ephemeralContainers"):
            for container in spec.get(group) or ():
                for each in container.get("envFrom") or ():
                    yield (each.get(f"{word}Ref") or {}).get("name", "")
                for each in container.get("env") or ():
                    yield ((each.get("valueFrom") or {}).get(f"{word}KeyRef") or {}).get("name", "")
