"""The catalogue: set-ups of a cluster, each with the cause a good operator would name and, often, a fix.

A file is a header and then the objects of the cluster, as YAML documents.  The header says

- ``about``: what is wrong, in words
- ``ask``: what is asked about, ``service NAMESPACE/NAME``, or ``name NAMESPACE/NAME`` for a DNS name that a Pod there
  looks up; with ``from`` (and ``port``), connections to a Service from there
- ``offline: yes``: the objects are manifests that are not applied yet
- ``now``: what time it is, if it matters
- ``cause``: the reason code to be named first, or ``healthy`` with the ``ready`` addresses
- ``says``: words the cause's sentence contains; ``notes``: words among its further facts
- ``never``: words that nothing in the report may contain
- ``advises``: words that the fix contains
- ``fix``: what is so once the proposed commands were run: the ``ready`` addresses, of another ``service`` if named,
  offered on ``port``
- ``then``: what happens after the controllers have settled
- ``controllers: off``: there are no endpoints but those in the file
- ``live``: why the set-up cannot be had on a running server

``$repeat: N`` in an object makes N of it, with ``$i`` and the address parts ``$a``, ``$b``, ``$c`` filled in; ``$shop``
and ``$back`` are the namespaces' names.
"""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Any

import msgspec
import yaml

from free_ports import free_port
from seamark.access.cluster import Cluster
from seamark.cli.asking.names import report_on
from seamark.clock import Clock
from seamark.kinds import resource
from seamark.kinds.resource import Resource
from seamark.why.explain import explain
from seamark.why.explain_way import parse_place
from seamark.why.look import look_at_service, look_at_way
from seamark.why.offline import _Loader as OfflineLoader
from seamark.why.offline import world_of
from seamark.why.report import Report

HERE = Path(__file__).parent / "catalogue"

_FASTEST: Any = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


class Loader(_FASTEST):
    """YAML as ``why`` reads it from manifests, ten times as fast: pytest reads all files while it collects tests."""

    yaml_implicit_resolvers = OfflineLoader.yaml_implicit_resolvers


RESOURCES: dict[str, Resource] = {
    each.kind: each
    for each in vars(resource).values()
    if isinstance(each, Resource) and each is not resource.NEW_EVENTS
}


class Case(msgspec.Struct):
    """One file."""

    name: str
    about: str
    ask: str
    objects: list[dict[str, Any]]
    cause: str = ""
    says: list[str] = []
    notes: list[str] = []
    healthy: dict[str, Any] | None = None
    fix: dict[str, Any] | None = None
    then: list[dict[str, Any]] = []
    controllers: Any = True
    live: Any = True
    offline: bool = False
    now: str = ""
    never: list[str] = []
    advises: list[str] = []
    client: str = msgspec.field(name="from", default="")
    port: int | None = None

    @property
    def key(self) -> tuple[str, str]:
        namespace, _, name = self.ask.split()[1].partition("/")
        return namespace, name

    @property
    def on_a_server(self) -> bool:
        """Not with owners: a server gives them other UIDs, and deletes what names an owner that is not there."""
        owned = any("ownerReferences" in each["metadata"] for each in self.objects)
        return self.live is True and not (self.offline or self.now or owned) and self.ask.startswith("service ")


def nowhere() -> tuple[str, ...]:
    """A resolver that is not there: names outside of the cluster are asked of no server beyond this machine."""
    return (f"127.0.0.1:{free_port()}",)


async def look(cluster: Cluster, case: Case, *, clock: Clock) -> Report:
    """The report that the case asks for."""
    if case.ask.startswith("name "):
        namespace, name = case.key
        return await report_on(cluster, name, namespace, "cluster.local", clock=clock, resolvers=nowhere())
    if case.client:
        return await look_at_way(cluster, case.key, parse_place(case.client), case.port, clock=clock)
    return await look_at_service(cluster, case.key, clock=clock)


def look_offline(case: Case) -> Report:
    """The report on manifests."""
    documents = [(case.name, copy.deepcopy(each)) for each in case.objects]
    return explain(world_of(documents, namespace=case.key[0]), case.key)


def load(path: Path, namespaces: dict[str, str] | None = None) -> Case:
    """``namespaces`` gives those of the file other names."""
    names = {"shop": "shop", "back": "back", **(namespaces or {})}
    header, *objects = copy.deepcopy(_documents(path))
    ready = [made for each in objects for made in _repeated(each)]
    case = msgspec.convert({**header, "name": path.stem, "objects": ready}, Case)
    return _renamed(case, names)


@functools.cache
def kept(path: Path) -> Case:
    """A case to look at, not to change: tests are chosen by them while pytest collects."""
    return load(path)


@functools.cache
def _documents(path: Path) -> list[Any]:
    return [each for each in yaml.load_all(path.read_text(), Loader=Loader) if each]


def everything() -> list[Path]:
    return sorted(HERE.glob("*.yaml"))


def _repeated(value: Any) -> list[Any]:
    """The value as often as it wants to be there."""
    if isinstance(value, dict):
        value = {key: _flat(entry) for key, entry in value.items()}
        if "$repeat" in value:
            count = value.pop("$repeat")
            return [_filled(value, number) for number in range(1, count + 1)]
    return [value]


def _flat(value: Any) -> Any:
    if isinstance(value, list):
        return [made for each in value for made in _repeated(each)]
    return _repeated(value)[0] if isinstance(value, dict) else value


def _filled(value: Any, number: int) -> Any:
    if isinstance(value, dict):
        return {key: _filled(entry, number) for key, entry in value.items()}
    if isinstance(value, list):
        return [_filled(entry, number) for entry in value]
    if isinstance(value, str) and "$" in value:
        parts = {"$i": number, "$a": 1 + number // 62500, "$b": number // 250 % 250, "$c": number % 250 + 1}
        for mark, part in parts.items():
            value = value.replace(mark, str(part))
    return value


def _renamed(case: Case, names: dict[str, str]) -> Case:
    def rename(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {each: rename(entry, each) for each, entry in value.items()}
        if isinstance(value, list):
            return [rename(entry) for entry in value]
        if isinstance(value, str):
            if key == "namespace":
                return names.get(value, value)
            for name, other in names.items():
                value = value.replace(f"${name}", other)
        return value

    case = copy.copy(case)
    case.objects = rename(case.objects)
    case.then = rename(case.then)
    kind, _, key = case.ask.partition(" ")
    namespace, _, name = key.partition("/")
    case.ask = f"{kind} {names.get(namespace, namespace)}/{name}"
    case.client = "/".join(names.get(part, part) for part in case.client.split("/"))
    if case.fix and "service" in case.fix:
        namespace, _, name = case.fix["service"].partition("/")
        case.fix = {**case.fix, "service": f"{names.get(namespace, namespace)}/{name}"}
    return case
