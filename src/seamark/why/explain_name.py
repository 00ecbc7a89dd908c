"""Why a DNS name is not found, told from the lookups along a Pod's search path (pure).

The lookups themselves are made by the DNS engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import msgspec

from seamark.kinds.values import addresses
from seamark.why import evidence
from seamark.why.case import listed
from seamark.why.checks.near import misspelt
from seamark.why.codes import Code
from seamark.why.evidence import Asked, Evidence
from seamark.why.finding import Finding, Fix, Severity
from seamark.why.report import Health, Report, Table
from seamark.why.views import Key, Service
from seamark.why.world import World


class Step(msgspec.Struct, frozen=True):
    """One lookup: what was asked, what was answered, and why."""

    name: str
    type: str
    result: str
    why: str
    records: tuple[str, ...] = ()


class Question(msgspec.Struct, frozen=True):
    """What a name may mean: a Service, and within it an endpoint (``web-0``) or a port (``_http._tcp``)."""

    service: Key
    host: str = ""
    port: str = ""


def questions(asked: str, namespace: str, zone: str) -> list[Question]:
    """What a name may mean to a Pod of that namespace, the likeliest first."""
    bare = asked.rstrip(".").lower()
    labels = bare.removesuffix(f".{zone}").split(".")
    if "svc" in labels[2:]:  # whatever follows it should be the zone
        labels = labels[: labels.index("svc", 2)]
    port = ".".join(label for label in labels if label.startswith("_"))
    match [label for label in labels if not label.startswith("_")]:
        case [name]:
            return [Question((namespace, name), port=port)]
        case [first, second]:
            # web.shop is the Service web of shop; web-0.web the Pod web-0 of the headless Service web.
            return [Question((second, first), port=port), Question((namespace, second), first, port)]
        case [host, name, where]:
            return [Question((where, name), host, port)]
    return []


def services_meant(asked: str, namespace: str, zone: str) -> list[Key]:
    """The Services a name may mean to a Pod of that namespace, the likeliest first."""
    return [each.service for each in questions(asked, namespace, zone)]


def explain_name(
    asked: str,
    steps: Sequence[Step],
    *,
    namespace: str,
    zone: str,
    services: Iterable[Service],
    behind: Report | None,
    world: World | None = None,
) -> Report:
    """The report on a name; ``behind`` is the report on the Service it leads to, ``world`` what that was made from."""
    table = Table(("NAME", "TYPE", "RESULT", "WHY"), tuple(_rows(steps)))
    found = [record.split()[-1] for step in steps for record in step.records if step.result == "found"]
    subject = f"dns/{asked}"
    if found:
        notes: tuple[str, ...] = ()
        if behind is not None and not behind.healthy:
            notes = (f"the name is found, but {behind.subject} in namespace {behind.namespace}: {behind.state}",)
        state = f"found: {listed(found, 4)}"
        return Report(subject, namespace, state, Health.HEALTHY, tables=(table,), ready=tuple(found), notes=notes)
    known = {service.key: service for service in services}
    looked = tuple(Asked(f"{step.name} {step.type}", step.result) for step in steps)
    missing = _missing(asked, namespace, zone, known, behind, world, looked)
    # The Service behind the name has to be repaired, so its findings follow.
    more = behind.findings[1:] if behind is not None and not behind.healthy else ()
    return Report(subject, namespace, "not found", Health.BROKEN, (missing, *more), tables=(table,))


def _rows(steps: Iterable[Step]) -> Iterator[tuple[str, ...]]:
    """One row per answer; record types with the same answer share a row."""
    for _, alike in groupby(steps, key=lambda step: (step.name, step.result, step.why, step.records)):
        same = list(alike)
        step = same[0]
        data = "; ".join(" ".join(record.split()[3:]) for record in step.records)
        why = " ".join(filter(None, (data, f"({step.why})" if data else step.why)))
        yield step.name, ",".join(each.type for each in same), step.result, why


def _missing(
    asked: str,
    namespace: str,
    zone: str,
    services: dict[Key, Service],
    behind: Report | None,
    world: World | None,
    looked: tuple[Evidence, ...],
) -> Finding:
    address = _of_reverse(asked)
    if address:
        return Finding(
            Code.NAME_NOT_FOUND,
            Severity.ERROR,
            f"No Service and no endpoint of a headless one has the address {address}, so DNS has no name for it.",
            Fix("Check the address; Pods have names only as endpoints of a headless Service."),
            looked,
        )
    of_pod = _of_pod(asked, zone)
    if of_pod is not None:
        return Finding(
            Code.NAME_NOT_FOUND,
            Severity.ERROR,
            f"DNS knows no Pod in namespace {of_pod[0]} with the address {of_pod[1]}.",
            Fix("Check the address and the namespace; Pods get another address whenever they are made anew."),
            looked,
        )
    dashed = _dashed(asked, zone)
    if dashed:
        return _guess(f"{asked} is not found: the label for a Pod's address has dashes, not dots.", dashed, looked)
    meant = questions(asked, namespace, zone)
    there = next((each for each in meant if each.service in services), None)
    if there is not None:
        whole = _whole(asked, there, zone)
        if whole:
            where, name = there.service
            cause = f"{asked} is not found: Service {name} of namespace {where} is called {name}.{where}.svc.{zone}"
            seen = (*looked, *evidence.of(services[there.service], "metadata.name"))
            return _guess(f"{cause}.", whole, seen)
        return _of_service(asked, there, services[there.service], behind, world, looked)
    names = [each.service for each in meant]
    elsewhere = sorted(key for key in services if any(key[1] == name for _, name in names))
    alike = sorted(
        key for key in services if any(key[0] == where and misspelt(key[1], name) is not None for where, name in names)
    )
    cause = f"No name on the search path of a Pod in namespace {namespace} leads anywhere for {asked}"
    if alike:
        name = alike[0][1] if alike[0][0] == namespace else f"{alike[0][1]}.{alike[0][0]}"
        seen = (*looked, *evidence.of(services[alike[0]], "metadata.name"))
        return _guess(f"{cause}; there is a Service {alike[0][1]} in namespace {alike[0][0]}.", name, seen)
    if elsewhere:
        where, name = elsewhere[0]
        others = listed(other for other, _ in elsewhere)
        seen = (*looked, *evidence.each((services[key] for key in elsewhere), "metadata.namespace"))
        return _guess(f"{cause}; Service {name} is in namespace {others}.", f"{name}.{where}", seen)
    fix = Fix("Make the Service, or check the name and the namespace.")
    return Finding(Code.NAME_NOT_FOUND, Severity.ERROR, f"{cause}.", fix, looked)


def _guess(cause: str, name: str, seen: tuple[Evidence, ...]) -> Finding:
    fix = Fix(f"If that is meant, ask for {name}.", certain=False)
    return Finding(Code.NAME_NOT_FOUND, Severity.ERROR, cause, fix, seen)


def _whole(asked: str, question: Question, zone: str) -> str:
    """The whole name, if the end of what was asked for is not that of a Service's name: a wrong zone, or no svc."""
    bare = asked.rstrip(".").lower()
    svc = bare.removesuffix(f".{zone}").split(".")[2:]
    if ("svc" not in svc and not bare.endswith(f".{zone}")) or svc[-1:] == ["svc"]:
        return ""
    namespace, name = question.service
    return ".".join(filter(None, (question.port, question.host, name, namespace, "svc", zone)))


def _of_reverse(asked: str) -> str:
    """The address that a name of a reverse zone stands for; "" for other names."""
    labels = asked.rstrip(".").lower().split(".")
    if labels[-2:] == ["in-addr", "arpa"]:
        return ".".join(reversed(labels[:-2]))
    if labels[-2:] == ["ip6", "arpa"]:
        digits = "".join(reversed(labels[:-2]))
        return addresses.canonical(":".join(digits[at : at + 4] for at in range(0, len(digits), 4)))
    return ""


def _of_pod(asked: str, zone: str) -> Key | None:
    """The namespace and the address that a name such as ``10-1-0-9.shop.pod`` stands for; None for other names."""
    labels = asked.rstrip(".").lower().removesuffix(f".{zone}").split(".")
    if len(labels) != 3 or labels[2] != "pod":
        return None
    written = (labels[0].replace("-", mark) for mark in ".:")
    return next(((labels[1], each) for each in written if addresses.parse(each) is not None), None)


def _dashed(asked: str, zone: str) -> str:
    """The right name for one such as ``10.1.0.9.shop.pod``; "" for other names."""
    labels = asked.rstrip(".").lower().removesuffix(f".{zone}").split(".")
    if labels[-1] != "pod" or addresses.parse(".".join(labels[:-2])) is None:
        return ""
    return f"{'-'.join(labels[:-2])}.{labels[-2]}.pod.{zone}"


# --- a name within a Service -----------------------------------------------------------------------


def _of_service(
    asked: str,
    question: Question,
    service: Service,
    behind: Report | None,
    world: World | None,
    looked: tuple[Evidence, ...],
) -> Finding:
    namespace, name = question.service
    cause = f"{asked} is Service {name} of namespace {namespace}, and DNS answers NXDOMAIN"
    seen = (*looked, *evidence.of(service, "spec.clusterIP", "spec.ports", "spec.type"))
    if question.port and (told := _no_port(question, service)) is not None:
        fix = Fix(f"Ask for {told[1]}." if told[1] else "Give the Service's port that name.", certain=False)
        return Finding(Code.NAME_NOT_FOUND, Severity.ERROR, f"{cause}: {told[0]}.", fix, seen)
    hosts = _hosts(world, question.service) if question.host and world is not None else {}
    if world is not None and hosts and question.host not in hosts:
        return _no_host(asked, question, world, hosts, seen)
    nothing = behind is not None and not behind.ready and service.headless
    why = ": it is headless and has no ready endpoint" if nothing else ""
    if behind is not None and behind.cause is not None:
        return Finding(
            Code.NAME_NOT_FOUND,
            Severity.ERROR,
            f"{cause}{why}. {behind.cause.cause}",
            behind.cause.fix,
            (*seen, *behind.cause.evidence),
        )
    why = why or ": it has no such record"
    return Finding(Code.NAME_NOT_FOUND, Severity.ERROR, f"{cause}{why}.", Fix("Ask for a record it has."), seen)


def _no_port(question: Question, service: Service) -> tuple[str, str] | None:
    """What is wrong with the port of an SRV name, and the name to ask for instead; None if it is right."""
    have = [f"_{port.name}._{port.protocol.lower()}" for port in service.spec.ports if port.name]
    if question.port in have:
        return None
    namespace, name = question.service
    close = [each for each in have if misspelt(each, question.port) is not None]
    better = close[0] if close else have[0] if len(have) == 1 else ""
    ask = f"{better}.{name}.{namespace}.svc" if better else listed(have)
    if not have:
        return "its ports have no names, and only named ports have SRV records", ""
    return f"it has no port {question.port}; its ports are {listed(have, 6)}", ask


def _hosts(world: World, key: Key) -> dict[str, str]:
    """The names that its endpoints have in DNS, each with an address: the hostname, or the address with dashes."""
    found: dict[str, str] = {}
    for each in world.slices_of(key):
        for endpoint in each.endpoints or ():
            for address in endpoint.addresses if endpoint.ready else ():
                found[endpoint.hostname or address.replace(".", "-").replace(":", "-")] = address
    return found


def _no_host(
    asked: str, question: Question, world: World, hosts: dict[str, str], seen: tuple[Evidence, ...]
) -> Finding:
    """The Service has endpoints, but none of the name that was asked for."""
    namespace, name = question.service
    pod = world.pods.get((namespace, question.host))
    shown = sorted(hosts)
    cause = (
        f"{asked} is not found: Service {name} of namespace {namespace} has"
        f" {'a ready endpoint' if len(hosts) == 1 else 'ready endpoints'}, but none called {question.host};"
        f" {'it is' if len(hosts) == 1 else 'they are'} called {listed(f'{each}.{name}' for each in shown)}"
    )
    seen = (*seen, *evidence.each(world.slices_of(question.service), "endpoints"))
    fix = Fix(f"Ask for {shown[0]}.{name}.", certain=False)
    if pod is None:
        close = [each for each in shown if misspelt(each, question.host) is not None]
        if close:
            fix = Fix(f"If {close[0]} is meant, ask for {close[0]}.{name}.", certain=False)
        seen = (*seen, evidence.search(world, "Pod", namespace, name=question.host))
        return Finding(Code.NAME_NOT_FOUND, Severity.ERROR, f"{cause}.", fix, seen)
    seen = (*seen, *evidence.of(pod, "spec.hostname", "spec.subdomain", "status.podIPs"))
    host, subdomain = pod.spec.hostname, pod.spec.subdomain
    own = next((each for each, address in hosts.items() if address in pod.ips), "")
    if not subdomain or not host:
        lacks = " and no ".join(w for w, value in (("hostname", host), ("subdomain", subdomain)) if not value)
        cause += f". Pod {question.host} has no {lacks} in its spec, so it has no name of its own"
        better = f"ask for {own}.{name}" if own else "ask for its address"
        fix = Fix(
            f"Give the Pod hostname {question.host} and subdomain {name} (a StatefulSet whose serviceName is {name}"
            f" does so), and ask again; or {better}.",
            certain=False,
        )
    elif subdomain != name:
        cause += f". Pod {question.host} has the subdomain {subdomain}, so its name is {host}.{subdomain}"
        there = (namespace, subdomain) in world.services
        seen = (*seen, evidence.search(world, "Service", namespace, name=subdomain))
        fix = (
            Fix(f"Ask for {host}.{subdomain}.", certain=False)
            if there
            else Fix(
                f"Make the headless Service {subdomain} that the Pod names (a StatefulSet's serviceName cannot be"
                f" changed), and ask for {host}.{subdomain}.",
                certain=False,
            )
        )
    elif host != question.host:
        cause += f". Pod {question.host} has the hostname {host}"
        fix = Fix(f"Ask for {host}.{name}.", certain=False)
    else:
        cause += f". Pod {question.host} is not among them"
        fix = Fix(f"See `why pod/{question.host}`: it says why the Service does not list it as ready.", certain=False)
    return Finding(Code.NAME_NOT_FOUND, Severity.ERROR, f"{cause}.", fix, seen)
