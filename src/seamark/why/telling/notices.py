"""Keeps one Event for each Service and cause, so that ``kubectl describe service`` tells what ``why`` would say.

An Event is written when a cause appears and lasts: one that the controllers, or the API server while it starts, are
about to remove is not told.  It is counted when its words change, refreshed before the server lets it expire, and
deleted once the cause is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.errors import Object
from seamark.kinds.resource import EVENTS, SERVICES
from seamark.kinds.values import times
from seamark.why.finding import Finding, Severity
from seamark.why.look import Survey, look_at_all
from seamark.why.observe import CannotLook
from seamark.why.telling.following import PACE, surveys
from seamark.why.views import Key

log = logging.getLogger(__name__)

COMPONENT = "seamark-why"
REFRESH = 20 * 60.0  # seconds; servers keep an Event for an hour
_LONGEST = 1024  # characters of an Event's message


class Changes(msgspec.Struct, frozen=True):
    """What to write, so that the Events are as they should be."""

    create: tuple[Object, ...] = ()
    patch: tuple[tuple[Key, Object], ...] = ()
    delete: tuple[Key, ...] = ()


def plan(survey: Survey, present: Sequence[Object], now: float) -> Changes:
    """From the Events that are there to those that a survey calls for."""
    before = {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in present}
    wanted = {
        (report.namespace, event["metadata"]["name"]): event
        for report in survey.reports
        for finding in report.findings
        if finding.severity is not Severity.HINT
        for event in [_event(report.namespace, report.subject.partition("/")[2], finding, survey.uids, now)]
        if event is not None
    }
    return Changes(
        create=tuple(event for key, event in wanted.items() if key not in before),
        patch=tuple(
            (key, change)
            for key, event in wanted.items()
            if key in before and (change := _change(before[key], event, now)) is not None
        ),
        delete=tuple(key for key in before if key not in wanted),
    )


def _event(namespace: str, service: str, finding: Finding, uids: Mapping[Key, str], now: float) -> Object | None:
    """The Event about a cause; None if the Service does not exist, because it has nothing to be described by."""
    uid = uids.get((namespace, service))
    if uid is None:
        return None
    about = {"kind": SERVICES.kind, "apiVersion": SERVICES.api_version, "namespace": namespace, "name": service}
    at = times.text(now)
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        # The uid is part of the name: a Service that is made anew begins with new Events.
        "metadata": {"name": f"{service}.{finding.code.value.lower()}.{uid[:8]}", "namespace": namespace},
        "involvedObject": {**about, "uid": uid},
        "type": "Warning",
        "reason": finding.code.value,
        "message": message(finding),
        "count": 1,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": "",
    }


def message(finding: Finding) -> str:
    """The cause, what to do, and the first command that does it."""
    commands = finding.fix.commands[:1]
    text = " ".join([finding.cause, finding.fix.text, *(command.text() for command in commands)])
    if not commands and text.endswith(":"):
        text = f"{text[:-1]}."
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _change(before: Object, event: Object, now: float) -> Object | None:
    last = times.parse(before.get("lastTimestamp") or "1970-01-01T00:00:00Z")
    if before.get("message") != event["message"]:
        count = int(before.get("count") or 1) + 1
        return {"message": event["message"], "count": count, "lastTimestamp": event["lastTimestamp"]}
    return {"lastTimestamp": event["lastTimestamp"]} if now - last >= REFRESH else None


def _in_both(events: Sequence[Object], earlier: Sequence[Object]) -> tuple[Object, ...]:
    named = {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in earlier}
    return tuple(each for each in events if (each["metadata"]["namespace"], each["metadata"]["name"]) in named)


async def keep_events(cluster: Cluster, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Keep the Events about all Services that need attention, until cancelled."""
    while True:
        try:
            async for survey in surveys(cluster, "", clock=clock):
                await tell(cluster, survey, clock=clock)
        except (errors.ApiError, CannotLook) as error:
            log.warning("Services were not looked at: %s", error)
        await clock.sleep(PACE)


async def tell(cluster: Cluster, survey: Survey, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Make the Events of the cluster those that the survey calls for; what cannot be written is logged."""
    present = (await cluster.list(EVENTS, fields=f"source={COMPONENT}")).items
    changes = plan(survey, present, clock.time())
    if changes.create:
        await clock.sleep(PACE)
        later = plan(await look_at_all(cluster, "", clock=clock), present, clock.time())
        changes = msgspec.structs.replace(later, create=_in_both(later.create, changes.create))
    try:
        for event in changes.create:
            await cluster.create(EVENTS, event, namespace=event["metadata"]["namespace"])
        for (namespace, name), change in changes.patch:
            await cluster.patch(EVENTS, name, change, namespace=namespace)
        for namespace, name in changes.delete:
            await cluster.delete(EVENTS, name, namespace=namespace)
    except (errors.NotFound, errors.AlreadyExists, errors.Conflict, errors.Forbidden) as error:
        log.warning("an Event was not written: %s", error)  # the next survey tries again
