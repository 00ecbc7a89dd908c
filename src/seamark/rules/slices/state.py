"""The EndpointSlices of one Service, kept up to date Pod by Pod and slice by slice.

Feed it what is observed, in any order, and ask it for the plan.  A difference is forgotten only once the slices were
seen to be right.  A plan that was not carried out, or only in part, therefore comes out again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from seamark.kinds.values.addresses import Family
from seamark.kinds.wellknown import ENDPOINTS_PER_SLICE
from seamark.rules import hints
from seamark.rules.changes import Changes, Notice
from seamark.rules.membership import judge
from seamark.rules.objects.endpointslice import Endpoint, EndpointSlice
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service
from seamark.rules.slices import objects
from seamark.rules.slices.group import Group
from seamark.rules.slices.objects import Content, Identity, PortKey, identity, port_key


class SlicesPlan(msgspec.Struct, frozen=True):
    """What to write, which Events to record, and what the controller must remember.

    ``nodeless`` are the Pods left out because their Node is missing, as (Pod, Node): write the rest, then fail and
    retry.  ``zones`` says, for each family that got hints by the topology annotation, how many endpoints each zone got.
    """

    changes: Changes[EndpointSlice]
    nodeless: tuple[tuple[str, str], ...] = ()
    notes: tuple[Notice, ...] = ()
    zones: Mapping[Family, hints.Zones] = msgspec.field(default_factory=dict)


class Topology(msgspec.Struct, frozen=True):
    """What hints by the topology annotation depend on, beside the endpoints.

    ``shares`` is each zone's part of the CPUs.  ``hinted`` says that the last plan gave hints, so that an Event can
    report when this one does not.
    """

    shares: Mapping[str, float] | None = None
    hinted: bool = False


class _FamilyDraft(msgspec.Struct):
    """The plan for one family, before the objects are made."""

    family: Family
    changed: dict[str, Content] = msgspec.field(default_factory=dict)
    new: list[tuple[PortKey, Content]] = msgspec.field(default_factory=list)
    removed: list[str] = msgspec.field(default_factory=list)


Place = tuple[Family, PortKey, Identity]


class SlicesState:
    """What the slices of one Service hold, and what they should hold."""

    def __init__(self, service: Service, *, limit: int = ENDPOINTS_PER_SLICE) -> None:
        self.service = service
        self.limit = limit
        self.mode = hints.mode(service)
        self.nodeless: dict[str, str] = {}
        self._slices: dict[str, EndpointSlice] = {}
        self._alien: set[str] = set()
        self._outdated: set[str] = set()
        self._filed: dict[str, tuple[Family, PortKey]] = {}
        self._members: dict[str, tuple[Place, ...]] = {}
        self._offers: dict[str, PortKey] = {}  # the ports of each Pod that has an address, of any family
        self._claims: Counter[PortKey] = Counter()  # how many Pods offer the same ports
        self._groups: dict[Family, dict[PortKey, Group]] = {family: {} for family in service.families}
        self._planned: list[tuple[EndpointSlice, Content]] = []

    def __len__(self) -> int:
        """How many slices there are."""
        return len(self._slices)

    # --- observing ---------------------------------------------------------------------------------

    def put(self, name: str, pod: Pod | None, node: Node | None) -> None:
        """Note the Pod of that name and its Node as they are now; None if the Service no longer selects one."""
        self.nodeless.pop(name, None)
        before = self._members.pop(name, ())
        places: list[Place] = []
        verdict = judge(self.service, pod, node) if pod is not None else None
        ports = tuple(sorted(verdict.ports)) if verdict is not None and (verdict.ipv4 or verdict.ipv6) else None
        self._claim(name, ports)
        if pod is not None and verdict is not None and ports is not None:
            if verdict.in_slices:
                for family, groups in self._groups.items():
                    if not verdict.addresses(family):
                        continue
                    endpoint = objects.endpoint_of(pod, verdict, family=family, mode=self.mode)
                    place = (family, ports, identity(endpoint))
                    places.append(place)
                    group = groups.get(ports)
                    if group is None:
                        group = groups[ports] = self._new_group()
                    group.want(place[2], endpoint)
            elif node is None:
                self.nodeless[name] = verdict.node
        for family, ports, which in before:
            if (family, ports, which) not in places:
                self._groups[family][ports].unwant(which)
                self._tidy(family, ports)
        if places:
            self._members[name] = tuple(places)

    def _claim(self, name: str, ports: PortKey | None) -> None:
        """Note the ports that a Pod offers; None if it cannot be an endpoint."""
        before = self._offers.pop(name, None)
        if before is not None:
            self._claims[before] -= 1
            if not self._claims[before]:
                del self._claims[before]
        if ports is not None:
            self._offers[name] = ports
            self._claims[ports] += 1

    def see(self, name: str, endpoint_slice: EndpointSlice | None) -> None:
        """Note the slice of that name as it is now; None if it is gone."""
        if endpoint_slice is not None:
            self.observe(endpoint_slice)
        else:
            self.forget(name)

    def observe(self, endpoint_slice: EndpointSlice) -> None:
        """Note a slice as it is now.  A slice that is being deleted counts as gone."""
        name = endpoint_slice.metadata.name
        if endpoint_slice.metadata.deletion_timestamp is not None:
            self.forget(name)
            return
        known = self._slices.get(name)
        version = endpoint_slice.metadata.resource_version
        if known is not None and version and version == known.metadata.resource_version:
            return
        self._slices[name] = endpoint_slice
        self._check_labels(endpoint_slice)
        family = endpoint_slice.family
        if family is None or family not in self._groups or not objects.owned(endpoint_slice, self.service):
            self._unfile(name)
            self._alien.add(name)
            return
        self._alien.discard(name)
        place = (family, port_key(endpoint_slice.ports or ()))
        if self._filed.get(name, place) != place:
            self._unfile(name)
        endpoints = endpoint_slice.endpoints or ()
        content = self._planned_content(endpoint_slice)
        if content is None:
            content = {identity(endpoint): endpoint for endpoint in endpoints}
        group = self._groups[family].get(place[1])
        if group is None:
            group = self._groups[family][place[1]] = self._new_group()
        group.hold(name, content, repeats=len(content) != len(endpoints))
        self._filed[name] = place

    def planned(self, endpoint_slice: EndpointSlice) -> bool:
        """Whether the slice is as the last plan wanted it, so that no new plan is needed."""
        return (
            self._planned_content(endpoint_slice) is not None
            and endpoint_slice.metadata.labels == objects.labels_for(self.service)
            and objects.owned(endpoint_slice, self.service)
        )

    def _planned_content(self, endpoint_slice: EndpointSlice) -> Content | None:
        for planned, content in self._planned:
            if (
                planned.metadata.name in ("", endpoint_slice.metadata.name)
                and planned.address_type == endpoint_slice.address_type
                and planned.endpoints == endpoint_slice.endpoints
                and planned.ports == endpoint_slice.ports
            ):
                return content
        return None

    def forget(self, name: str) -> None:
        """Note that the slice is gone, or no longer managed by this controller."""
        self._slices.pop(name, None)
        self._alien.discard(name)
        self._outdated.discard(name)
        self._unfile(name)

    def renew(self, service: Service) -> bool:
        """Go on with a changed Service; False if every Pod must be judged again, in a new state."""
        old, new = self.service, service
        if (old.metadata.uid, old.metadata.name, old.spec, self.mode) != (
            new.metadata.uid,
            new.metadata.name,
            new.spec,
            hints.mode(new),
        ):
            return False
        self.service = service
        if old.metadata.labels != new.metadata.labels:
            for endpoint_slice in self._slices.values():
                self._check_labels(endpoint_slice)
        return True

    # --- planning ----------------------------------------------------------------------------------

    def plan(self, *, topology: Topology | None = None, trigger_time: str = "") -> SlicesPlan:
        """What to write so that the slices list these Pods."""
        topology = topology or Topology()
        self._planned = []
        drafts = [self._draft(family, groups) for family, groups in self._groups.items()]
        notices: list[Notice] = []
        zones: dict[Family, hints.Zones] = {}
        if self.mode == "topology":
            for draft in drafts:
                self._share_out(draft, topology, notices, zones)
        elif topology.hinted:
            notices += [_disabled("Topology Aware Hints has been disabled", draft.family) for draft in drafts]
        create: list[EndpointSlice] = []
        update: list[EndpointSlice] = []
        delete = [self._slices[name] for name in sorted(self._alien)]
        for draft in drafts:
            self._settle(draft, create=create, update=update, delete=delete, trigger_time=trigger_time)
        if self.service.metadata.deletion_timestamp is not None:
            # The garbage collector is about to remove our slices: new ones would only race with it.
            create.clear()
        changes = Changes(tuple(create), tuple(update), tuple(delete))
        return SlicesPlan(changes, tuple(sorted(self.nodeless.items())), tuple(notices), zones)

    def _draft(self, family: Family, groups: Mapping[PortKey, Group]) -> _FamilyDraft:
        draft = _FamilyDraft(family)
        for ports in sorted(groups):
            group = groups[ports]
            outdated = self._outdated & group.slices.keys()
            plan = group.plan(outdated=outdated, limit=self.limit, claimed=ports in self._claims)
            draft.changed |= plan.changed
            draft.new += [(ports, content) for content in plan.new]
            draft.removed += plan.removed
        if not draft.new and len(draft.removed) == sum(len(group.slices) for group in groups.values()):
            self._leave_placeholder(draft)
        return draft

    def _leave_placeholder(self, draft: _FamilyDraft) -> None:
        """Where no slice of a family would be left, an empty slice says that there are no endpoints."""
        alien = any(self._slices[name].address_type == draft.family for name in self._alien)
        if len(draft.removed) == 1 and not alien:
            [name] = draft.removed
            if objects.is_placeholder(self._slices[name], self.service):
                draft.removed.clear()
                return
        draft.new.append(((), {}))

    def _settle(
        self,
        draft: _FamilyDraft,
        *,
        create: list[EndpointSlice],
        update: list[EndpointSlice],
        delete: list[EndpointSlice],
        trigger_time: str,
    ) -> None:
        """Make the objects of one family.  New slices are written over those due for deletion, if any."""
        for name in sorted(draft.changed):
            content = draft.changed[name]
            made = objects.edited(self._slices[name], self.service, content, trigger_time=trigger_time)
            update.append(made)
            self._planned.append((made, content))
        discarded = [self._slices[name] for name in sorted(draft.removed)]
        for ports, content in draft.new:
            made = objects.new_slice(self.service, content, family=draft.family, ports=ports, trigger_time=trigger_time)
            self._planned.append((made, content))
            if discarded:
                update.append(objects.written_over(made, discarded.pop(0)))
            else:
                create.append(made)
        delete += discarded

    def _share_out(
        self, draft: _FamilyDraft, topology: Topology, notices: list[Notice], zones: dict[Family, hints.Zones]
    ) -> None:
        """Give the draft the hints that the topology annotation asks for, or take all hints away."""
        untouched = {name: content for name, content in self._contents(draft.family) if name not in draft.changed}
        for name in draft.removed:
            untouched.pop(name, None)
        contents = [content for _, content in draft.new]
        contents += [draft.changed[name] for name in sorted(draft.changed)]
        written = [True] * len(contents) + [False] * len(untouched)
        names: list[str | None] = [*([None] * len(draft.new)), *sorted(draft.changed), *sorted(untouched)]
        contents += [untouched[name] for name in sorted(untouched)]
        outcome = hints.share_out([tuple(content.values()) for content in contents], written, topology.shares)
        if isinstance(outcome, hints.Refusal):
            notices.append(_disabled(outcome.message, draft.family))
            rewritten = {
                position: hints.stripped(content.values())
                for position, content in enumerate(contents)
                if any(endpoint.hints is not None for endpoint in content.values())
            }
        else:
            zones[draft.family] = outcome.given
            rewritten = outcome.contents
            if not topology.hinted:
                message = f"Topology Aware Hints has been enabled, addressType: {draft.family}"
                notices.append(Notice("Normal", "TopologyAwareHintsEnabled", message))
        for position, endpoints in rewritten.items():
            content = dict(zip(contents[position], endpoints, strict=True))
            existing = names[position]
            if existing is None:
                draft.new[position] = (draft.new[position][0], content)
            elif existing in draft.changed or content != untouched[existing]:
                draft.changed[existing] = content

    def _contents(self, family: Family) -> Iterator[tuple[str, Content]]:
        for group in self._groups[family].values():
            yield from group.slices.items()

    def wanted(self, family: Family) -> Iterator[tuple[PortKey, Endpoint]]:
        """The endpoints that the slices of a family should list, each with its ports.

        Hints by the topology annotation are missing: they depend on all endpoints, and the plan adds them.
        """
        for ports, group in self._groups[family].items():
            for endpoint in group.wanted.values():
                yield ports, endpoint

    # --- keeping -----------------------------------------------------------------------------------

    def _new_group(self) -> Group:
        return Group(ignore_hints=self.mode == "topology")

    def _check_labels(self, endpoint_slice: EndpointSlice) -> None:
        meta = endpoint_slice.metadata
        if objects.free_labels(meta.labels) == objects.free_labels(self.service.metadata.labels):
            self._outdated.discard(meta.name)
        else:
            self._outdated.add(meta.name)

    def _unfile(self, name: str) -> None:
        place = self._filed.pop(name, None)
        if place is not None:
            family, ports = place
            self._groups[family][ports].drop(name)
            self._tidy(family, ports)

    def _tidy(self, family: Family, ports: PortKey) -> None:
        if self._groups[family][ports].idle:
            del self._groups[family][ports]


def _disabled(message: str, family: Family) -> Notice:
    return Notice("Warning", "TopologyAwareHintsDisabled", f"{message}, addressType: {family}")
