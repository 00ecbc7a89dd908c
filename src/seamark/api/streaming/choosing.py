"""Decides which container of a Pod a request means, and which part of which log; refuses as Kubernetes does.  Pure."""

from __future__ import annotations

from typing import Literal

from seamark import errors
from seamark.access.pod_streams import STDERR, STDIN, STDOUT, Command, LogOptions
from seamark.api.http.url import Query, first, flag, integer
from seamark.errors import Object
from seamark.kinds.resource import Resource
from seamark.kinds.values import times
from seamark.kinds.values.fields import Errors, forbidden, invalid, not_supported, refuse, show

_LOG_OPTIONS = Resource("", "v1", "podlogoptions", "PodLogOptions")
_STREAMS: tuple[Literal["All", "Stdout", "Stderr"], ...] = ("All", "Stdout", "Stderr")


def container_of(pod: Object, asked: str) -> str:
    """The container that is meant; raises BadRequest if it is not clear or not there."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    kinds = {field: [each["name"] for each in spec.get(field) or ()] for field in _FIELDS}
    main, initial, extra = kinds.values()
    if asked:
        if not any(asked in names for names in kinds.values()):
            raise errors.BadRequest(f"container {asked} is not valid for pod {name}")
        return asked
    if len(main) == 1:
        return str(main[0])
    sentence = f"a container name must be specified for pod {name}, choose one of: [{' '.join(main)}]"
    if initial:
        sentence += f" or one of the init containers: [{' '.join(initial)}]"
    if extra:
        sentence += f" or one of the ephemeral containers: [{' '.join(extra)}]"
    raise errors.BadRequest(sentence)


_FIELDS = {
    "containers": "containerStatuses",
    "initContainers": "initContainerStatuses",
    "ephemeralContainers": "ephemeralContainerStatuses",
}


def check_can_run(pod: Object, doing: str) -> None:
    """Raise unless something can be run in the Pod; ``doing`` is "exec into" or "attach"."""
    meta, phase = pod["metadata"], (pod.get("status") or {}).get("phase")
    if phase in ("Succeeded", "Failed"):
        raise errors.BadRequest(f"cannot {doing} a container in a completed pod; current phase is {phase}")
    if not pod["spec"].get("nodeName"):
        raise errors.BadRequest(f"pod {meta['name']} does not have a host assigned")


def command_of(query: Query, *, exec: bool) -> Command:
    """What exec or attach asks for."""
    streams = {
        number for number, name in ((STDIN, "stdin"), (STDOUT, "stdout"), (STDERR, "stderr")) if flag(query, name)
    }
    terminal = flag(query, "tty")
    if terminal:
        streams.discard(STDERR)  # a terminal has one output
    if not streams:
        raise errors.BadRequest("you must specify at least 1 of stdin, stdout, stderr")
    words = tuple(query.get("command", ())) if exec else ()
    if exec and not words:
        raise errors.BadRequest("you must specify at least one command")
    return Command(words, frozenset(streams), terminal)


# --- logs ------------------------------------------------------------------------------------------


def log_options(name: str, query: Query, *, now: float) -> LogOptions:
    """The part of a log, of whichever run; raises an ``ApiError`` for options that make no sense.

    They are judged before the Pod is looked for, so only its ``name`` is known.
    """
    found: Errors = []
    since, tail, limit = (integer(query, each) for each in ("sinceSeconds", "tailLines", "limitBytes"))
    moment = first(query, "sinceTime")
    stream = first(query, "stream") or "All"
    if tail is not None and tail < 0:
        found.append(invalid("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        found.append(invalid("limitBytes", limit, "must be greater than 0"))
    if since is not None and moment:
        found.append(forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif since is not None and since < 1:
        found.append(invalid("sinceSeconds", since, "must be greater than 0"))
    if stream not in _STREAMS:
        found.append(not_supported("stream", stream, _STREAMS))
    elif stream != "All" and tail is not None:
        found.append(forbidden("[]", "`tailLines` and specific `stream` are mutually exclusive for now"))
    if found:
        raise refuse(_LOG_OPTIONS, name, found)
    return LogOptions(
        follow=flag(query, "follow"),
        since=_moment(moment) if moment else None if since is None else now - since,
        tail=tail,
        limit=limit,
        timestamps=flag(query, "timestamps"),
        stream=next(each for each in _STREAMS if each == stream),
    )


def _moment(text: str) -> float:
    try:
        return times.parse(text)
    except ValueError:
        raise errors.BadRequest(f"sinceTime: {show(text)} is not a time in the form of RFC 3339") from None


def log_run(pod: Object, container: str, *, previous: bool) -> int:
    """The number of the container's run whose log is meant; raises BadRequest if there is none."""
    where = f'container "{container}" in pod "{pod["metadata"]["name"]}"'
    status = _status_of(pod, container)
    count = int(status.get("restartCount") or 0)
    state, last = status.get("state") or {}, (status.get("lastState") or {}).get("terminated")
    if previous:
        if last is None:
            raise errors.BadRequest(f"previous terminated {where} not found")
        return count if "waiting" in state else count - 1
    if "running" in state or "terminated" in state or last is not None:
        return count
    reason = (state.get("waiting") or {}).get("reason")
    if not reason:
        raise errors.BadRequest(f"{where} is waiting to start - no logs yet")
    raise errors.BadRequest(f"{where} is waiting to start: {_WAITING.get(reason, reason)}")


_WAITING = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


def _status_of(pod: Object, container: str) -> Object:
    status = pod.get("status") or {}
    for field in _FIELDS.values():
        for each in status.get(field) or ():
            if each["name"] == container:
                return dict(each)
    return {}
