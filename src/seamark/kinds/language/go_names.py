"""Prints values as Go prints its internal structs: every field in the type's order, under its Go name.

Some messages of Kubernetes quote internal structs, which have no JSON names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seamark.errors import Object

Printer = Callable[[Any], Any]


def struct(**fields: Any) -> Printer:
    """A printer for a struct; for each field its Go name and either its zero value or the printer of its value."""

    def show(value: Any) -> Any:
        if value is None:
            return None
        shown: Object = {}
        for name, zero in fields.items():
            held = value.get(_json_name(name))
            if callable(zero):
                shown[name] = zero(held)
            else:
                shown[name] = zero if held is None else held
        return shown

    return show


def list_of(printer: Printer) -> Printer:
    """A printer for a list; an absent or empty list is null."""
    return lambda values: None if not values else [printer(value) for value in values]


def label_selector(selector: Object | None) -> str:
    """A LabelSelector as its ``String`` method prints it, on one line."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{each.get('key', '')},Operator:{each.get('operator', '')},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def _json_name(name: str) -> str:
    """``PodIPs`` → ``podIPs``, ``IP`` → ``ip``, ``UID`` → ``uid``, ``APIVersion`` → ``apiVersion``."""
    return _IRREGULAR.get(name) or name[0].lower() + name[1:]


_IRREGULAR = {
    "APIGroup": "apiGroup",
    "APIGroups": "apiGroups",
    "CEL": "cel",
    "IP": "ip",
    "UID": "uid",
    "APIVersion": "apiVersion",
    "SELinuxOptions": "seLinuxOptions",
    "GMSACredentialSpecName": "gmsaCredentialSpecName",
    "GMSACredentialSpec": "gmsaCredentialSpec",
}


NODE_ADDRESS = struct(Type="", Address="")
TAINT = struct(Key="", Value="", Effect="", TimeAdded=None)
TOLERATION = struct(Key="", Operator="", Value="", Effect="", TolerationSeconds=None)
TRUST_BUNDLE = struct(Name=None, SignerName=None, LabelSelector=None, Optional=None, Path="")
POD_IP = struct(IP="")
SECCOMP_PROFILE = struct(Type="", LocalhostProfile=None)
POD_RESOURCE_CLAIM = struct(Name="", ResourceClaimName=None, ResourceClaimTemplateName=None)
ROLLING_DEPLOYMENT = struct(MaxUnavailable=None, MaxSurge=None)
DEPLOYMENT_STRATEGY = struct(Type="", RollingUpdate=ROLLING_DEPLOYMENT)
ROLLING_STATEFUL_SET = struct(Partition=0, MaxUnavailable=None)
STATEFUL_SET_STRATEGY = struct(Type="", RollingUpdate=ROLLING_STATEFUL_SET)
OBJECT_REFERENCE = struct(Kind="", Namespace="", Name="", UID="", APIVersion="", ResourceVersion="", FieldPath="")
EVENT_SOURCE = struct(Component="", Host="")
_REQUIREMENT = struct(Key="", Operator="", Values=None)
NODE_SELECTOR_TERM = struct(MatchExpressions=list_of(_REQUIREMENT), MatchFields=list_of(_REQUIREMENT))
CSI_NODE_DRIVER = struct(Name="", NodeID="", TopologyKeys=None, Allocatable=None)
DISTINGUISHER_METHOD = struct(Type="")
_NAMED = struct(Name="")
_FLOW_SUBJECT = struct(Kind="", User=_NAMED, Group=_NAMED, ServiceAccount=struct(Namespace="", Name=""))
_FLOW_RULE = struct(
    Subjects=list_of(_FLOW_SUBJECT),
    ResourceRules=list_of(struct(Verbs=None, APIGroups=None, Resources=None, ClusterScope=False, Namespaces=None)),
    NonResourceRules=list_of(struct(Verbs=None, NonResourceURLs=None)),
)
FLOW_SCHEMA_SPEC = struct(
    PriorityLevelConfiguration=lambda held: _NAMED(held or {}),
    MatchingPrecedence=0,
    DistinguisherMethod=DISTINGUISHER_METHOD,
    Rules=list_of(_FLOW_RULE),
)
_LIMIT_RESPONSE = struct(Type="", Queuing=struct(Queues=0, HandSize=0, QueueLengthLimit=0))
_LIMITED_LEVEL = struct(
    NominalConcurrencyShares=0,
    LimitResponse=lambda held: _LIMIT_RESPONSE(held or {}),
    LendablePercent=None,
    BorrowingLimitPercent=None,
)
PRIORITY_LEVEL_SPEC = struct(
    Type="", Limited=_LIMITED_LEVEL, Exempt=struct(NominalConcurrencyShares=None, LendablePercent=None)
)
AUDIT_ANNOTATION = struct(Key="", ValueExpression="")
SCOPE_SELECTOR = struct(MatchExpressions=list_of(struct(ScopeName="", Operator="", Values=None)))
PARENT_REFERENCE = struct(Group="", Resource="", Namespace="", Name="")
SUCCESS_POLICY = struct(Rules=list_of(struct(SucceededIndexes=None, SucceededCount=None)))
FAILURE_POLICY = struct(
    Rules=list_of(
        struct(
            Action="",
            OnExitCodes=struct(ContainerName=None, Operator="", Values=None),
            OnPodConditions=list_of(struct(Type="", Status="")),
        )
    )
)
UNCOUNTED_PODS = struct(Succeeded=None, Failed=None)
VOLUME_NODE_AFFINITY = struct(Required=struct(NodeSelectorTerms=list_of(NODE_SELECTOR_TERM)))
_METADATA = ("name", "generateName", "namespace", "labels", "annotations", "ownerReferences", "finalizers")
_CLAIM_RESOURCES = struct(Limits=None, Requests=None)
_CLAIM_SPEC = struct(
    AccessModes=None,
    Selector=None,
    Resources=lambda held: _CLAIM_RESOURCES(held or {}),
    VolumeName="",
    StorageClassName=None,
    VolumeMode=None,
    DataSource=struct(APIGroup=None, Kind="", Name=""),
    DataSourceRef=struct(APIGroup=None, Kind="", Name="", Namespace=None),
    VolumeAttributesClassName=None,
)
_CLAIM_STATUS = struct(
    Phase="",
    AccessModes=None,
    Capacity=None,
    Conditions=None,
    AllocatedResources=None,
    AllocatedResourceStatuses=None,
    CurrentVolumeAttributesClassName=None,
    ModifyVolumeStatus=None,
    HealthStatus=None,
)


def _claim(claim: Object) -> Object:
    """A claim's metadata are not apart from its other fields, and have JSON names."""
    meta = claim.get("metadata") or {}
    shown = {name: meta[name] for name in _METADATA if name in meta}
    return shown | {"Spec": _CLAIM_SPEC(claim.get("spec") or {}), "Status": _CLAIM_STATUS(claim.get("status") or {})}


CLAIMS = list_of(_claim)
_SCALING_RULES = struct(
    StabilizationWindowSeconds=None,
    SelectPolicy=None,
    Policies=list_of(struct(Type="", Value=0, PeriodSeconds=0)),
    Tolerance=None,
)
SCALING_BEHAVIOUR = struct(ScaleUp=_SCALING_RULES, ScaleDown=_SCALING_RULES)
SECURITY_CONTEXT = struct(
    Capabilities=struct(Add=None, Drop=None),
    Privileged=None,
    SELinuxOptions=struct(User="", Role="", Type="", Level=""),
    WindowsOptions=struct(GMSACredentialSpecName=None, GMSACredentialSpec=None, RunAsUserName=None, HostProcess=None),
    RunAsUser=None,
    RunAsGroup=None,
    RunAsNonRoot=None,
    ReadOnlyRootFilesystem=None,
    AllowPrivilegeEscalation=None,
    ProcMount=None,
    SeccompProfile=SECCOMP_PROFILE,
    AppArmorProfile=struct(Type="", LocalhostProfile=None),
)
