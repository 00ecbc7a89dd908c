"""Everything about one Service: the Pods it selects with their verdicts, what is written about it, and what should be.

What should be is asked of :mod:`seamark.rules`, by the same states and functions that the controllers run.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import msgspec

from seamark.rules import mirroring
from seamark.rules.endpoints import EndpointsState
from seamark.rules.membership import Reason, Standing, Verdict, judge
from seamark.rules.mirroring import MirrorPlan
from seamark.rules.objects import endpoints as rules_endpoints
from seamark.rules.objects import endpointslice as rules_slice
from seamark.rules.objects.node import Node
from seamark.rules.slices import objects as slice_objects
from seamark.rules.slices.state import SlicesState
from seamark.why import evidence
from seamark.why.checks.near import NearMiss, near_misses
from seamark.why.checks.patient import Patient, Trouble
from seamark.why.checks.pods import trouble
from seamark.why.evidence import Field, Search
from seamark.why.views import Endpoints, EndpointSlice, Key, Pod, Service
from seamark.why.world import World


class Candidate(msgspec.Struct, frozen=True):
    """A Pod that the selector matches, the verdict on it, and, if it gets no traffic, the trouble it is in."""

    pod: Pod
    node: Node | None
    verdict: Verdict
    trouble: Trouble | None

    @property
    def listed_ready(self) -> bool:
        """Whether EndpointSlices list it as ready."""
        return self.verdict.standing is Standing.READY

    @property
    def would_serve(self) -> bool:
        """Whether nothing about the Pod itself keeps traffic from it."""
        return self.trouble is None and self.listed_ready


def patient(world: World, pod: Pod) -> Patient:
    """A Pod with what the world knows of it."""
    events = world.events_by_object.get(("Pod", *pod.key), ())
    node, name = world.node_of(pod), pod.spec.node_name
    absent = evidence.search(world, "Node", "", name=name) if node is None and name else None
    claims = [event for claim in pod.claims for event in world.events_by_object.get(_claim(pod, claim), ())[:1]]
    return Patient(pod, node, world.now, tuple(events), absent, tuple(claims))


def _claim(pod: Pod, name: str) -> tuple[str, str, str]:
    return "PersistentVolumeClaim", pod.metadata.namespace, name


class Case:
    """What the checks read."""

    def __init__(self, world: World, service: Service) -> None:
        self.world = world
        self.service = service

    @property
    def key(self) -> Key:
        return self.service.key

    @property
    def namespace(self) -> str:
        return self.service.metadata.namespace

    @property
    def name(self) -> str:
        return self.service.metadata.name

    def seen(self, *paths: str) -> tuple[Field, ...]:
        """Fields of the Service, as evidence."""
        return evidence.of(self.service, *paths)

    def pods_found(self) -> Search:
        """How many Pods the selector matches, as evidence."""
        return evidence.search(self.world, "Pod", self.namespace, labels=self.service.spec.selector or {})

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        return tuple(self._candidate(pod) for pod in self.world.pods_of(self.service))

    def _candidate(self, pod: Pod) -> Candidate:
        node = self.world.node_of(pod)
        verdict = judge(self.service, pod, node)
        serves = verdict.standing is Standing.READY and Reason.PUBLISHED_ANYWAY not in verdict.reasons
        return Candidate(pod, node, verdict, None if serves else trouble(patient(self.world, pod)))

    @cached_property
    def near_misses(self) -> list[NearMiss]:
        """What the selector almost matches in its own namespace."""
        shapes = self.world.shapes(self.namespace)
        return near_misses(self.service.spec.selector or {}, shapes, name=self.name)

    @cached_property
    def ready(self) -> tuple[Candidate, ...]:
        """The Pods that EndpointSlices list as ready."""
        return tuple(each for each in self.candidates if each.listed_ready)

    @cached_property
    def slices(self) -> tuple[EndpointSlice, ...]:
        return tuple(self.world.slices_of(self.key))

    @cached_property
    def controller_slices(self) -> tuple[EndpointSlice, ...]:
        return tuple(each for each in self.slices if slice_objects.ours(each))

    @property
    def endpoints(self) -> Endpoints | None:
        return self.world.endpoints.get(self.key)

    # --- what should be written --------------------------------------------------------------------

    @cached_property
    def wanted_slices(self) -> SlicesState:
        """The state of the EndpointSlice controller after it has seen these Pods."""
        state = SlicesState(self.service)
        for each in self.candidates:
            state.put(each.pod.metadata.name, each.pod, each.node)
        return state

    @cached_property
    def wanted_endpoints(self) -> rules_endpoints.Endpoints:
        """The Endpoints that the Endpoints controller would create for these Pods."""
        state = EndpointsState(self.service)
        for each in self.candidates:
            state.put(each.pod.metadata.name, each.pod)
        [wanted] = state.plan(None).create
        return wanted

    @cached_property
    def mirror(self) -> MirrorPlan:
        """What the mirroring controller would do about the Endpoints if there were no mirrored slices yet."""
        return mirroring.plan(self.service, self.endpoints, ())

    # --- where traffic goes ------------------------------------------------------------------------

    @cached_property
    def ready_addresses(self) -> tuple[str, ...]:
        """Where traffic may go: as the controllers decide, or, for a Service without a selector, as users wrote."""
        if self.service.managed:
            found: Iterable[str] = (
                address
                for each in self.ready
                for family in self.service.families
                for address in each.verdict.addresses(family)
            )
        else:
            found = [address for each in self.slices if self._used(each) for address in each.ready_addresses()]
            if not found and not self.world.bookkept:
                mirrored = [each for each in self.mirror.changes.create if self._used(each)]
                found = [address for each in mirrored for address in each.ready_addresses()]
        return tuple(sorted(set(found)))

    def _used(self, each: rules_slice.EndpointSlice) -> bool:
        """Whether proxies use a slice of that address type; DNS answers a headless Service's name with any."""
        return self.service.headless or each.address_type in self.service.families


def plural(count: int, word: str) -> str:
    """``1 Pod``, ``2 Pods``."""
    ending = "es" if word.endswith("s") else "s"
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}{ending}"


def listed(words: Iterable[str], limit: int = 3) -> str:
    """``a, b, c and 4 more``."""
    words = list(words)
    if len(words) <= limit + 1:
        return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""
    return f"{', '.join(words[:limit])} and {len(words) - limit} more"


def pairs(labels: dict[str, str] | None) -> str:
    """``app=web,tier=front``, as kubectl writes a selector."""
    return ",".join(f"{visible(key)}={visible(value)}" for key, value in sorted((labels or {}).items()))


def visible(value: str) -> str:
    """The value, in quotes if it has spaces that a reader would overlook."""
    return value if value.split() == [value] or not value else f'"{value}"'


def offered_port(name: str, protocol: str) -> str:
    """A port by name and protocol: these two join the ports of a Service to those of its endpoints."""
    return f"{name or '(unnamed)'}/{protocol}"
