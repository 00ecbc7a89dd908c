"""What is wrong in a cluster, for the message of a test that waited in vain.

That is what ``why`` says of Services, the Pods that are not ready, the warnings and the last changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from seamark.api.authorization import component
from seamark.api.server import ApiServer
from seamark.errors import Object
from seamark.kinds.resource import EVENTS, NODES, PODS

CHANGES_SHOWN = 10
LINES_SHOWN = 20
_BUSY = ("Lease", "Event")


async def tell(api: ApiServer) -> str:
    from seamark.why.look import look_at_all
    from seamark.why.render import Style, report

    cluster = api.cluster("seamark-why", user=component("seamark-why"))
    survey = await look_at_all(cluster, "")
    parts = [report(each, Style(columns=100)) for each in survey.reports]
    pods = (await cluster.list(PODS)).items
    if pods and not (await cluster.list(NODES)).items:
        parts.append("There is no node, so no Pod can run: give nodes=1 or more.")
    parts.append(_listed("Pods that are not ready", (line for pod in pods if (line := _pod(pod)))))
    warnings = [each for each in (await cluster.list(EVENTS)).items if each.get("type") == "Warning"]
    parts.append(_listed("warnings", map(_warning, warnings)))
    parts.append(_listed("changed last", _changes(api)))
    return "\n\n".join(filter(None, parts))


def _listed(heading: str, lines: Iterator[str]) -> str:
    shown = list(lines)[:LINES_SHOWN]
    return "\n".join([f"{heading}:", *(f"  {line}" for line in shown)]) if shown else ""


def _pod(pod: Object) -> str:
    """Why a Pod is not ready, by its own conditions and containers; empty if it is, or need not be."""
    status = pod.get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    if status.get("phase") == "Succeeded" or conditions.get("Ready", {}).get("status") == "True":
        return ""
    said = [f"{each['type']}: {each['message']}" for each in conditions.values() if each.get("message")]
    for container in status.get("containerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting") or {}
        said += [f"{container['name']}: {waiting[field]}" for field in ("reason", "message") if waiting.get(field)]
    return f"{_named(pod)} is {status.get('phase', 'Pending')}" + "".join(f"; {each}" for each in said)


def _warning(event: Object) -> str:
    about = event.get("involvedObject") or {}
    return f"{about.get('kind')} {about.get('namespace', '')}/{about.get('name')}: {event.get('message')}"


def _changes(api: ApiServer) -> Iterator[str]:
    """The objects that were written last, the newest first, but for those that are renewed all the time."""
    entries = [
        (entry.revision, kind, path)
        for collection in api.cache.collections
        if (kind := min((each.kind for each in collection.shown_as), default="Lease")) not in _BUSY
        for path, entry in collection.entries.items()
    ]
    yield from (f"{kind} {path}" for _, kind, path in sorted(entries, reverse=True)[:CHANGES_SHOWN])


def _named(obj: Object) -> str:
    meta = obj["metadata"]
    return f"{meta.get('namespace', '')}/{meta['name']}"
