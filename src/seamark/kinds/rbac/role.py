"""Role and ClusterRole: rules about resources; those of a ClusterRole may also be about URLs that are no resources."""

from __future__ import annotations

from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.resource import CLUSTER_ROLES, ROLES
from seamark.kinds.values.fields import Errors, invalid, required
from seamark.kinds.values.label_selector import label_selector_mistakes, readable
from seamark.kinds.values.metadata import path_segment


class RoleKind(Kind):
    resource = ROLES
    singular = "role"
    shape_name = "io.k8s.api.rbac.v1.Role"
    create_on_update = True

    def validate_name(self, name: str, *, prefix: bool) -> list[str]:
        return path_segment(name, prefix=prefix)

    def prepare_create(self, obj: Object) -> None:
        _without_empty_rules(obj)

    def prepare_update(self, obj: Object, old: Object) -> None:
        _without_empty_rules(obj)

    def validate(self, obj: Object) -> Errors:
        rules = obj.get("rules") or []
        errors: Errors = []
        for i, rule in enumerate(rules):
            errors += self._rule_mistakes(rule, f"rules[{i}]")
        errors += self._aggregation_mistakes(obj)
        # Kubernetes declares this rule with the type and checks it last.
        return errors + [required(f"rules[{i}].verbs") for i, rule in enumerate(rules) if not rule.get("verbs")]

    def _rule_mistakes(self, rule: Object, path: str) -> Errors:
        if urls := rule.get("nonResourceURLs"):
            if self.resource.namespaced:
                return [invalid(f"{path}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")]
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                sentence = "rules cannot apply to both regular resources and non-resource URLs"
                return [invalid(f"{path}.nonResourceURLs", urls, sentence)]
            return []
        errors: Errors = []
        if not rule.get("apiGroups"):
            errors.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
        if not rule.get("resources"):
            errors.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
        return errors

    def _aggregation_mistakes(self, obj: Object) -> Errors:
        return []


class ClusterRoleKind(RoleKind):
    resource = CLUSTER_ROLES
    singular = "clusterrole"
    shape_name = "io.k8s.api.rbac.v1.ClusterRole"

    def _aggregation_mistakes(self, obj: Object) -> Errors:
        aggregation = obj.get("aggregationRule")
        if aggregation is None:
            return []
        path = "aggregationRule.clusterRoleSelectors"
        selectors = aggregation.get("clusterRoleSelectors")
        if not selectors:
            return [required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")]
        errors: Errors = []
        for i, selector in enumerate(selectors):
            errors += label_selector_mistakes(selector, f"{path}[{i}]")
            if readable(selector) is None:
                errors.append(invalid(f"{path}[{i}]", None, "invalid label selector."))
        return errors


def _without_empty_rules(obj: Object) -> None:
    """An empty or absent list of rules is stored as null."""
    if not obj.get("rules"):
        obj["rules"] = None


ROLE = RoleKind()
CLUSTER_ROLE = ClusterRoleKind()
