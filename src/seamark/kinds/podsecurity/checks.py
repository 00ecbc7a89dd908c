"""Which checks a level has in each version of Kubernetes, and what they find.

A check may change with a version, and a restricted one may take the place of a weaker one of the baseline, so that a
mistake is not reported twice.  Within a level, checks run in the order of Kubernetes' names for them, those of the
baseline first: clients see violations in this order.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from seamark.kinds.podsecurity import baseline, restricted
from seamark.kinds.podsecurity.policy import BASELINE, PRIVILEGED, Standard
from seamark.kinds.podsecurity.restricted import unless_own_users, unless_windows
from seamark.kinds.podsecurity.subject import Check, Subject, Violation


class Since(NamedTuple):
    """The form that a check has from version v1.``minor`` on."""

    minor: int
    check: Check
    replaces: str = ""  # the check of the baseline that is left out


_BASELINE: dict[str, tuple[Since, ...]] = {
    "appArmorProfile": (Since(0, baseline.app_armor),),
    "capabilities_baseline": (Since(0, baseline.capabilities),),
    "hostNamespaces": (Since(0, baseline.host_namespaces),),
    "hostPathVolumes": (Since(0, baseline.host_paths),),
    "hostPorts": (Since(0, baseline.host_ports),),
    "hostProbesAndHostLifecycle": (Since(34, baseline.handler_hosts),),
    "privileged": (Since(0, baseline.privileged),),
    "procMount": (Since(0, baseline.proc_mount), Since(35, unless_own_users(baseline.proc_mount))),
    "seLinuxOptions": (
        Since(0, baseline.se_linux(baseline.SE_LINUX_TYPES)),
        Since(31, baseline.se_linux(baseline.SE_LINUX_TYPES_1_31)),
    ),
    "seccompProfile_baseline": (Since(0, baseline.seccomp_annotations), Since(19, baseline.seccomp)),
    "sysctls": (
        Since(0, baseline.sysctls(baseline.SYSCTLS)),
        Since(27, baseline.sysctls(baseline.SYSCTLS_1_27)),
        Since(29, baseline.sysctls(baseline.SYSCTLS_1_29)),
        Since(32, baseline.sysctls(baseline.SYSCTLS_1_32)),
    ),
    "windowsHostProcess": (Since(0, baseline.host_process),),
}

_RESTRICTED: dict[str, tuple[Since, ...]] = {
    "allowPrivilegeEscalation": (
        Since(8, restricted.privilege_escalation),
        Since(25, unless_windows(restricted.privilege_escalation)),
    ),
    "capabilities_restricted": (
        Since(22, restricted.capabilities, replaces="capabilities_baseline"),
        Since(25, unless_windows(restricted.capabilities), replaces="capabilities_baseline"),
    ),
    "procMount_restricted": (Since(35, baseline.proc_mount, replaces="procMount"),),
    "restrictedVolumes": (Since(0, restricted.volumes, replaces="hostPathVolumes"),),
    "runAsNonRoot": (Since(0, restricted.non_root), Since(35, unless_own_users(restricted.non_root))),
    "runAsUser": (Since(23, restricted.not_user_0), Since(35, unless_own_users(restricted.not_user_0))),
    "seccompProfile_restricted": (
        Since(19, restricted.seccomp, replaces="seccompProfile_baseline"),
        Since(25, unless_windows(restricted.seccomp), replaces="seccompProfile_baseline"),
    ),
}


def _as_of(table: dict[str, tuple[Since, ...]], minor: int | None) -> dict[str, Since]:
    """The checks of a version by name, in their order; a version yet to come is like the latest."""
    forms = {name: [form for form in table[name] if minor is None or form.minor <= minor] for name in sorted(table)}
    return {name: found[-1] for name, found in forms.items() if found}


@lru_cache(maxsize=256)
def checks_of(standard: Standard) -> tuple[Check, ...]:
    """The checks that a Pod must pass to comply with a standard."""
    if standard.level == PRIVILEGED:
        return ()
    basic = _as_of(_BASELINE, standard.minor)
    if standard.level == BASELINE:
        return tuple(form.check for form in basic.values())
    more = _as_of(_RESTRICTED, standard.minor)
    replaced = {form.replaces for form in more.values()}
    return (
        *(form.check for name, form in basic.items() if name not in replaced),
        *(form.check for form in more.values()),
    )


def violations(standard: Standard, pod: Subject) -> list[Violation]:
    """All that is wrong with the Pod by this standard."""
    return [found for check in checks_of(standard) if (found := check(pod)) is not None]
