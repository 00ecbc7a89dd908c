"""The FlowSchemas and PriorityLevelConfigurations that every cluster has, in short lines.

A level is its name, its shares of the seats, the percentage it lends, and its queues with their hand size.  A schema is
its name, its level, its precedence, how it tells flows apart (``-``: not at all), its subjects, and its rules: verbs,
API groups and resources, or verbs and paths.  A schema without rules is about everything.
"""

from __future__ import annotations

from seamark.errors import Object

# The annotation that says whether the server keeps the specification as it is here.
AUTOUPDATE = "apf.kubernetes.io/autoupdate-spec"

# A schema and a level of each of these names have to be as they are here.  They are what no request can be without.
MANDATORY = ("exempt", "catch-all")

_LEVELS = """
    global-default | 20 | 50 | 128 6
    leader-election | 10 | 0 | 16 4
    node-high | 40 | 25 | 64 6
    system | 30 | 33 | 64 6
    workload-high | 40 | 50 | 128 6
    workload-low | 100 | 90 | 128 6
"""
_QUEUE_LENGTH = 50

_SCHEMAS = """
    exempt | exempt | 1 | - | Group system:masters
    probes | exempt | 2 | - | Group system:unauthenticated, Group system:authenticated | get | /healthz /readyz /livez
    system-leader-election | leader-election | 100 | ByUser | User system:kube-controller-manager, \
User system:kube-scheduler, ServiceAccount * | create get update | coordination.k8s.io | leases
    endpoint-controller | workload-high | 150 | ByUser | User system:kube-controller-manager, \
ServiceAccount endpoint-controller, ServiceAccount endpointslicemirroring-controller | create get update | core | \
endpoints
    workload-leader-election | leader-election | 200 | ByUser | ServiceAccount * | create get update | core | \
configmaps endpoints | create get update | coordination.k8s.io | leases
    system-node-high | node-high | 400 | ByUser | Group system:nodes | * | core | nodes nodes/status | * | \
coordination.k8s.io | leases
    system-nodes | system | 500 | ByUser | Group system:nodes
    kube-controller-manager | workload-high | 800 | ByNamespace | User system:kube-controller-manager
    kube-scheduler | workload-high | 800 | ByNamespace | User system:kube-scheduler
    kube-system-service-accounts | workload-high | 900 | ByNamespace | ServiceAccount *
    service-accounts | workload-low | 9000 | ByUser | Group system:serviceaccounts
    global-default | global-default | 9900 | ByUser | Group system:unauthenticated, Group system:authenticated
    catch-all | catch-all | 10000 | ByUser | Group system:unauthenticated, Group system:authenticated
"""
_EVERYTHING = ["*", "*", "*"]


def priority_levels() -> list[Object]:
    rejecting = {"nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}}
    made = [
        _object("exempt", {"type": "Exempt", "exempt": {}}),
        _object("catch-all", {"type": "Limited", "limited": rejecting}),
    ]
    for name, shares, lent, queues in _fields(_LEVELS):
        count, hand = map(int, queues.split())
        queuing = {"queues": count, "handSize": hand, "queueLengthLimit": _QUEUE_LENGTH}
        limited = {
            "nominalConcurrencyShares": int(shares),
            "lendablePercent": int(lent),
            "limitResponse": {"type": "Queue", "queuing": queuing},
        }
        made.append(_object(name, {"type": "Limited", "limited": limited}))
    return made


def flow_schemas() -> list[Object]:
    return [_schema(*fields) for fields in _fields(_SCHEMAS)]


def _fields(lines: str) -> list[list[str]]:
    return [[field.strip() for field in line.split("|")] for line in lines.strip().splitlines()]


def _object(name: str, spec: Object) -> Object:
    return {"metadata": {"name": name, "annotations": {AUTOUPDATE: "true"}}, "spec": spec}


def _schema(name: str, level: str, precedence: str, method: str, subjects: str, *rules: str) -> Object:
    rule: Object = {"subjects": [_subject(*each.split()) for each in subjects.split(",")]}
    if len(rules) == 2:
        rule["nonResourceRules"] = [{"verbs": rules[0].split(), "nonResourceURLs": rules[1].split()}]
    else:
        listed = list(rules) or _EVERYTHING
        rule["resourceRules"] = [_resources(*listed[i : i + 3]) for i in range(0, len(listed), 3)]
    if not rules:
        rule["nonResourceRules"] = [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
    spec: Object = {
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": int(precedence),
        "rules": [rule],
    }
    if method != "-":
        spec["distinguisherMethod"] = {"type": method}
    return _object(name, spec)


def _subject(kind: str, name: str) -> Object:
    if kind == "ServiceAccount":
        return {"kind": kind, "serviceAccount": {"name": name, "namespace": "kube-system"}}
    return {"kind": kind, kind.lower(): {"name": name}}


def _resources(verbs: str, groups: str, resources: str) -> Object:
    rule: Object = {
        "verbs": verbs.split(),
        "apiGroups": ["" if group == "core" else group for group in groups.split()],
        "resources": resources.split(),
        "namespaces": ["*"],
    }
    return rule | ({"clusterScope": True} if resources == "*" or "nodes" in resources.split() else {})
