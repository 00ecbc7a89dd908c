"""Makes the Pods of a Job from its template (pure)."""

from __future__ import annotations

from collections.abc import Mapping

from seamark.controllers.batch.job import TRACKING, Job
from seamark.controllers.batch.tally import next_attempt
from seamark.controllers.workloads.templates import pod_from
from seamark.errors import Object
from seamark.kinds.resource import JOBS
from seamark.kinds.wellknown import JOB_INDEX_LABEL
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.workloads import owner_reference

INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
_LONGEST_PREFIX = 58
_ENVIRONMENT = {
    "name": INDEX_VARIABLE,
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{JOB_INDEX_LABEL}']"}},
}


def job_pod(job: Job, index: int | None, held: Mapping[int, Pod]) -> Object:
    """The Pod for an index, or any Pod of a Job without indexes, without a name."""
    assert job.spec.template is not None, "the API server demands one"
    pod = pod_from(job.spec.template, owner=owner_reference(JOBS, job.metadata))
    metadata = pod["metadata"]
    metadata["finalizers"] = [*(f for f in metadata.get("finalizers", ()) if f != TRACKING), TRACKING]
    if index is None:
        return pod
    numbered = {JOB_INDEX_LABEL: str(index)}
    attempt = next_attempt(job, held.get(index)) if job.per_index else {}
    metadata["annotations"] = {**metadata.get("annotations", {}), **numbered, **attempt}
    metadata["labels"] = {**metadata.get("labels", {}), **numbered}
    metadata["generateName"] = _prefix(job.metadata.name, index)
    pod["spec"] = _told(pod["spec"]) | {"hostname": f"{job.metadata.name}-{index}"}
    return pod


def _prefix(name: str, index: int) -> str:
    ending = f"-{index}-"
    return name[: _LONGEST_PREFIX - len(ending)] + ending


def _told(spec: Object) -> Object:
    """The spec with the index in the environment of every container that does not set it itself."""
    told = dict(spec)
    for group in ("containers", "initContainers"):
        if spec.get(group):
            told[group] = [_with_index(container) for container in spec[group]]
    return told


def _with_index(container: Object) -> Object:
    variables = container.get("env") or []
    if any(each.get("name") == INDEX_VARIABLE for each in variables):
        return container
    return {**container, "env": [*variables, _ENVIRONMENT]}
