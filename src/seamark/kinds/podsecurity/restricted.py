"""The checks that the level "restricted" adds: what a hardened Pod says about itself."""

from __future__ import annotations

from seamark.kinds.podsecurity.baseline import capabilities_of
from seamark.kinds.podsecurity.baseline import seccomp as seccomp_baseline
from seamark.kinds.podsecurity.subject import (
    Check,
    Subject,
    Violation,
    containers,
    contexts,
    gathered,
    plural,
    quoted,
    setters,
    use,
)

VOLUMES = frozenset(
    (
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    )
)
_NON_ROOT = "runAsNonRoot != true"


def unless_windows(check: Check) -> Check:
    """The check, but for Pods that say that they are for Windows, which has nothing of the kind."""
    return lambda pod: None if pod.windows else check(pod)


def unless_own_users(check: Check) -> Check:
    """The check, but for Pods with a user namespace of their own."""
    return lambda pod: None if pod.own_users else check(pod)


def privilege_escalation(pod: Subject) -> Violation | None:
    names = [part.name for part in pod.parts if part.context.get("allowPrivilegeEscalation") is not False]
    if not names:
        return None
    detail = f"{containers(names)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail)


def capabilities(pod: Subject) -> Violation | None:
    keeping = [part.name for part in pod.parts if "ALL" not in capabilities_of(part, "drop")]
    adding, added = gathered(pod, lambda part: capabilities_of(part, "add") - {"NET_BIND_SERVICE"})
    details = []
    if keeping:
        details.append(f'{containers(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        extra = quoted(sorted(added))
        details.append(f"{containers(adding)} must not include {extra} in securityContext.capabilities.add")
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def volumes(pod: Subject) -> Violation | None:
    names, types = [], set()
    for volume in pod.spec.get("volumes") or ():
        sources = [field for field, value in volume.items() if field != "name" and value is not None]
        if not VOLUMES.intersection(sources):
            names.append(volume.get("name", ""))
            types.add(sources[0] if sources else "unknown")
    if not names:
        return None
    what = plural("restricted volume type", types)
    detail = f"{plural('volume', names)} {quoted(names)} {use(names)} {what} {quoted(sorted(types))}"
    return Violation("restricted volume types", detail)


def non_root(pod: Subject) -> Violation | None:
    explicit = [who for who, value in contexts(pod, "runAsNonRoot") if not value]
    if explicit:
        return Violation(_NON_ROOT, f"{setters(explicit)} must not set securityContext.runAsNonRoot=false")
    if pod.context.get("runAsNonRoot"):
        return None
    names = [part.name for part in pod.parts if part.context.get("runAsNonRoot") is None]
    if not names:
        return None
    return Violation(_NON_ROOT, f"pod or {containers(names)} must set securityContext.runAsNonRoot=true")


def not_user_0(pod: Subject) -> Violation | None:
    names = [who for who, user in contexts(pod, "runAsUser") if user == 0]
    return Violation("runAsUser=0", f"{setters(names)} must not set runAsUser=0") if names else None


def seccomp(pod: Subject) -> Violation | None:
    explicit = seccomp_baseline(pod)
    if explicit is not None or pod.context.get("seccompProfile") is not None:
        return explicit
    names = [part.name for part in pod.parts if part.context.get("seccompProfile") is None]
    if not names:
        return None
    detail = (
        f'pod or {containers(names)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    )
    return Violation("seccompProfile", detail)
