"""A Deployment, its ReplicaSets and their Pods as plain data: the controllers' pure parts take turns on them.

Each ``step`` is one controller acting once on what is there; the test chooses the order, so that every
controller may be as far behind the others as it likes.
"""

import msgspec
from workload_objects import deployment, pod

from seamark.controllers.workloads import replicas, rollout
from seamark.controllers.workloads.replicas import ReplicaSet
from seamark.kinds.values import times


class Model:
    def __init__(self, **spec):
        self.now = 1_000_000.0
        self.deployment = deployment(metadata={"generation": 1}, **spec)
        self.sets = {}
        self.pods = {}  # name → (name of its ReplicaSet, Pod)
        self._made = 0

    # --- what people do ----------------------------------------------------------------------------

    def edit(self, **spec):
        before = msgspec.to_builtins(self.deployment.spec)
        image = spec.pop("image", None)
        if image:
            template = before["template"]
            container = {**template["spec"]["containers"][0], "image": image}
            spec["template"] = {**template, "spec": {"containers": [container]}}
        after = {**before, **spec}
        if after == before:
            return
        meta = self.deployment.metadata
        self.deployment = msgspec.structs.replace(
            self.deployment,
            spec=msgspec.convert(after, type(self.deployment.spec)),
            metadata=msgspec.structs.replace(meta, generation=meta.generation + 1),
        )

    def set_ready(self, name, ready):
        if name in self.pods:
            owner, before = self.pods[name]
            status = pod(name, ready=ready, since=self.now).status
            self.pods[name] = (owner, msgspec.structs.replace(before, status=status))

    def remove(self, name):
        """What was told to go is gone."""
        if name in self.pods and self.pods[name][1].terminating:
            del self.pods[name]

    # --- the controllers ---------------------------------------------------------------------------

    def step_deployment(self):
        """One look of the Deployment's controller; says whether it wrote anything."""
        sets = list(self.sets.values())
        new, _ = rollout.split(self.deployment, sets)
        lingering = any(owner != (new and new.metadata.name) for owner, _ in self.pods.values())
        planned = rollout.plan(self.deployment, sets, lingering=lingering, now=self.now)
        before = (self.deployment, dict(self.sets))
        if planned.create is not None:
            made = msgspec.convert(planned.create, ReplicaSet)
            meta = msgspec.structs.replace(
                made.metadata, uid=f"uid-{made.metadata.name}", generation=1, creation_timestamp=self._moment()
            )
            self.sets[made.metadata.name] = msgspec.structs.replace(made, metadata=meta)
        for resize in planned.resize:
            meta, old = resize.after.metadata, self.sets[resize.before.metadata.name]
            changed = meta.generation + (resize.after.spec != resize.before.spec)
            meta = msgspec.structs.replace(meta, generation=changed)
            self.sets[meta.name] = msgspec.structs.replace(resize.after, metadata=meta, status=old.status)
        for gone in planned.delete:
            del self.sets[gone.metadata.name]
        annotations = {**self.deployment.metadata.annotations}
        if planned.revision:
            annotations["deployment.kubernetes.io/revision"] = planned.revision
        meta = msgspec.structs.replace(self.deployment.metadata, annotations=annotations)
        self.deployment = msgspec.structs.replace(self.deployment, metadata=meta, status=planned.status)
        return before != (self.deployment, self.sets)

    def step_set(self, name):
        """One look of a ReplicaSet's controller, which then sees what it did; says whether anything changed."""
        rs = self.sets.get(name)
        if rs is None:
            return False
        active = self.of(name)
        everybody = [p for _, p in self.pods.values()]
        change = replicas.plan(rs, active, related=everybody, now=self.now)
        for _ in range(change.create):
            self._made += 1
            made = pod(f"p{self._made}", phase="Pending", created=self.now, labels={**_labels(rs)})
            self.pods[made.metadata.name] = (name, made)
        for gone in change.delete:
            meta = msgspec.structs.replace(gone.metadata, deletion_timestamp=times.text(self.now))
            self.pods[gone.metadata.name] = (name, msgspec.structs.replace(gone, metadata=meta))
        terminating = sum(p.terminating for owner, p in self.pods.values() if owner == name)
        status = replicas.count(rs, self.of(name), terminating=terminating, failure=None, now=self.now)
        self.sets[name] = msgspec.structs.replace(rs, status=status)
        return bool(change.create or change.delete) or status != rs.status

    def settle(self):
        """Everything works and every controller acts, until none has anything left to do."""
        for _ in range(500):
            moved = self.step_deployment()
            for name in list(self.sets):
                moved |= self.step_set(name)
            for name, (_, found) in list(self.pods.items()):
                moved |= found.terminating or not found.ready
                self.remove(name)
                self.set_ready(name, True)
            if not moved:
                return
            self.now += 1
        raise AssertionError("it never settles")

    # --- what can be seen --------------------------------------------------------------------------

    def of(self, name):
        return [p for owner, p in self.pods.values() if owner == name and p.active]

    @property
    def active(self):
        return [p for _, p in self.pods.values() if p.active]

    @property
    def available(self):
        return sum(p.ready for p in self.active)

    def _moment(self):
        self.now += 1
        return times.text(self.now)


def _labels(rs):
    return rs.spec.template["metadata"]["labels"]
