"""Reviews: questions to the API server.  They are answered, never stored.

TokenReview and SelfSubjectReview ask for a user's identity, the access reviews ask what a user may do.
"""

from __future__ import annotations

from seamark.errors import BadRequest, Object
from seamark.kinds.inquiry import Inquiry
from seamark.kinds.kind import Kind
from seamark.kinds.resource import Resource
from seamark.kinds.values.fields import Errors, invalid, refuse, required
from seamark.kinds.values.label_selector import label_mistakes, operator_mistakes


class ReviewKind(Kind):
    """A kind that can only be created; the answer is the document with a status."""

    verbs = ("create",)
    stored = False


def _selector_mistakes(spec: Object) -> Errors:
    """What is wrong with the selectors of an access review.  Operators that are unknown here may be known elsewhere."""
    asked, errors = spec.get("resourceAttributes") or {}, Errors()
    for field in ("fieldSelector", "labelSelector"):
        selector, at = asked.get(field), f"spec.resourceAttributes.{field}"
        if selector is None:
            continue
        raw, requirements = selector.get("rawSelector", ""), selector.get("requirements") or ()
        if raw and requirements:
            errors.append(invalid(f"{at}.rawSelector", raw, "may not specified at the same time as requirements"))
        if not raw and not requirements:
            sentence = f"when {at} is specified, requirements or rawSelector is required"
            errors.append(required(f"{at}.requirements", sentence))
        for i, requirement in enumerate(requirements):
            path = f"{at}.requirements[{i}]"
            if field == "fieldSelector" and not requirement.get("key"):
                errors.append(required(f"{path}.key", "must be specified"))
            errors += operator_mistakes(requirement, path, unknown=True)
            if field == "labelSelector":
                errors += label_mistakes(requirement, path)
    return errors


class SelfSubjectReviewKind(ReviewKind):
    """Asks which user makes the request."""

    resource = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)
    singular = "selfsubjectreview"
    shape_name = "io.k8s.api.authentication.v1.SelfSubjectReview"

    def answer(self, obj: Object, namespace: str, inquiry: Inquiry) -> Object:
        obj["metadata"]["creationTimestamp"] = inquiry.now
        return {"userInfo": inquiry.user}


class TokenReviewKind(ReviewKind):
    """Asks which user a token belongs to."""

    resource = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
    singular = "tokenreview"
    shape_name = "io.k8s.api.authentication.v1.TokenReview"

    def answer(self, obj: Object, namespace: str, inquiry: Inquiry) -> Object:
        spec = obj.get("spec") or {}
        if not spec.get("token"):
            raise BadRequest("token is required for TokenReview in authentication")
        return inquiry.examine_token(spec["token"], spec.get("audiences") or inquiry.audiences)


class SelfSubjectRulesReviewKind(ReviewKind):
    """Asks what the user of the request may do in a namespace."""

    resource = Resource(
        "authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", namespaced=False
    )
    singular = "selfsubjectrulesreview"
    shape_name = "io.k8s.api.authorization.v1.SelfSubjectRulesReview"

    def answer(self, obj: Object, namespace: str, inquiry: Inquiry) -> Object:
        asked = (obj.get("spec") or {}).get("namespace")
        if not asked:
            raise BadRequest("no namespace on request")
        obj["spec"] = {}  # Kubernetes does not repeat the question
        return inquiry.rules(asked)


class SelfSubjectAccessReviewKind(ReviewKind):
    """May I do this?"""

    resource = Resource(
        "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
    )
    singular = "selfsubjectaccessreview"
    shape_name = "io.k8s.api.authorization.v1.SelfSubjectAccessReview"

    def answer(self, obj: Object, namespace: str, inquiry: Inquiry) -> Object:
        spec = obj.get("spec") or {}
        self.check(spec, _selector_mistakes(spec) + self.metadata_mistakes(obj["metadata"]))
        return inquiry.access(spec)

    @staticmethod
    def metadata_mistakes(meta: Object) -> Errors:
        """A question has no name and no labels."""
        return [invalid("metadata", meta, "must be empty")] if meta.keys() - {"managedFields"} else []

    def check(self, spec: Object, more: Errors) -> None:
        """Raises unless the spec asks exactly one question and there is nothing ``more`` wrong."""
        asked = [key for key in ("resourceAttributes", "nonResourceAttributes") if spec.get(key)]
        wrong: Errors = []
        if len(asked) != 1:
            sentence = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            wrong = [invalid("spec", in_go(spec["nonResourceAttributes"]) if asked else None, sentence)]
        if wrong or more:
            # Kubernetes names no kind here.
            raise refuse(Resource(self.resource.group, "v1", "", ""), "", wrong + more)


class SubjectAccessReviewKind(SelfSubjectAccessReviewKind):
    """May this user do this?"""

    resource = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
    singular = "subjectaccessreview"
    shape_name = "io.k8s.api.authorization.v1.SubjectAccessReview"

    def answer(self, obj: Object, namespace: str, inquiry: Inquiry) -> Object:
        spec = obj.get("spec") or {}
        wrong: Errors = []
        if not spec.get("user") and not spec.get("groups"):
            wrong.append(invalid("spec.user", "", "at least one of user or group must be specified"))
        wrong += _selector_mistakes(spec)
        self.check(spec, wrong + self.metadata_mistakes(obj["metadata"]) + self.place_mistakes(spec, namespace))
        return inquiry.access(spec, spec.get("user", ""), spec.get("groups") or ())

    def place_mistakes(self, spec: Object, namespace: str) -> Errors:
        return []


class LocalSubjectAccessReviewKind(SubjectAccessReviewKind):
    """May this user do this in the namespace I ask in?"""

    resource = Resource("authorization.k8s.io", "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview")
    singular = "localsubjectaccessreview"
    shape_name = "io.k8s.api.authorization.v1.LocalSubjectAccessReview"

    @staticmethod
    def metadata_mistakes(meta: Object) -> Errors:
        if meta.keys() - {"managedFields", "namespace"}:
            return [invalid("metadata", meta, "must be empty except for namespace")]
        return []

    def place_mistakes(self, spec: Object, namespace: str) -> Errors:
        errors: Errors = []
        attributes = spec.get("resourceAttributes")
        if attributes and attributes.get("namespace", "") != namespace:
            path = "spec.resourceAttributes.namespace"
            errors.append(invalid(path, attributes.get("namespace", ""), "must match metadata.namespace"))
        if spec.get("nonResourceAttributes"):
            sentence = "disallowed on this kind of request"
            errors.append(invalid("spec.nonResourceAttributes", in_go(spec["nonResourceAttributes"]), sentence))
        return errors


def in_go(asked: Object) -> Object:
    """The attributes of a path with the names of Go's fields."""
    return {"Path": asked.get("path", ""), "Verb": asked.get("verb", "")}


REVIEWS: tuple[ReviewKind, ...] = (
    SelfSubjectReviewKind(),
    TokenReviewKind(),
    LocalSubjectAccessReviewKind(),
    SelfSubjectAccessReviewKind(),
    SelfSubjectRulesReviewKind(),
    SubjectAccessReviewKind(),
)
