"""PodTemplate: a template of Pods, kept for controllers that make Pods from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from seamark.errors import Object
from seamark.kinds.counted import CountedKind, same_generation
from seamark.kinds.kind import Column
from seamark.kinds.pod.validation import template_mistakes
from seamark.kinds.pod.warnings import spec_warnings
from seamark.kinds.resource import POD_TEMPLATES
from seamark.kinds.values.fields import Errors
from seamark.kinds.workloads.workload import container_cells, default_template, labels_cell


class PodTemplateKind(CountedKind):
    resource = POD_TEMPLATES
    singular = "podtemplate"
    shape_name = "io.k8s.api.core.v1.PodTemplate"
    columns = (Column("Name", format="name"), Column("Containers"), Column("Images"), Column("Pod Labels"))
    counted: ClassVar[tuple[str, ...]] = ("template",)
    delete_answers_object = True

    def default(self, obj: Object) -> None:
        default_template(obj)

    def validate(self, obj: Object) -> Errors:
        return template_mistakes(obj["template"], "template")

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        if same_generation(obj, old):
            return []
        template = obj["template"]
        return spec_warnings(template.get("metadata") or {}, template["spec"], "template")

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        labels = (obj["template"].get("metadata") or {}).get("labels")
        return [obj["metadata"].get("name", ""), *container_cells(obj["template"]), labels_cell(labels)]


POD_TEMPLATE = PodTemplateKind()
