"""Errors and their Status: one class per reason, there and back."""

import pytest

from seamark import errors

# Other modules have subclasses for themselves.
CLASSES = sorted(
    {each for each in errors._classes(errors.ApiError) if each.__module__ == errors.__name__}, key=lambda c: c.__name__
)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda c: c.__name__)
def test_every_class_comes_back_from_its_status(kind):
    causes = (errors.Cause("FieldValueInvalid", "Invalid value", "spec.x"),)
    error = kind("it went wrong", details={"name": "n", "kind": "pods"}, causes=causes, retry_after=3)
    again = errors.from_status(errors.status(error))
    assert type(again) is kind
    assert (again.message, again.code, again.reason) == ("it went wrong", kind.code, kind.reason)
    assert (again.details, again.causes, again.retry_after) == ({"name": "n", "kind": "pods"}, causes, 3)


def test_reasons_are_unique_and_in_the_tree_at_the_top():
    reasons = [kind.reason for kind in CLASSES]
    assert len(set(reasons)) == len(reasons)
    for kind in CLASSES:
        line = next(line for line in errors.__doc__.splitlines() if f" {kind.__name__} " in line)
        assert f" {kind.code}" in line


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"code": 404}, errors.NotFound),
        ({"code": 409, "reason": "AlreadyExists"}, errors.AlreadyExists),
        ({"code": 409}, errors.Conflict),
        ({"code": 500, "reason": "ServerTimeout"}, errors.ServerTimeout),
        ({"code": 504}, errors.Timeout),
        ({"code": 418, "reason": "Teapot"}, errors.ApiError),
        ({"code": 404, "reason": "Teapot"}, errors.ApiError),
        ({}, errors.ApiError),
        ({"code": 422, "reason": "Invalid", "details": None, "message": None}, errors.Invalid),
    ],
)
def test_foreign_answers(answer, kind):
    error = errors.from_status(answer)
    assert type(error) is kind
    assert error.code == (answer.get("code") or 500)
    assert error.message


@pytest.mark.parametrize("name", ["code", "reason", "message", "details", "causes", "retryAfterSeconds", "field"])
@pytest.mark.parametrize("odd", [None, True, "x", 1.5, [], [1], [None], {}, {"a": 1}, [{"reason": 5}], [{"field": []}]])
def test_foreign_answers_may_have_any_types(name, odd):
    for details in (odd, {name: odd}):
        error = errors.from_status({"code": 418, "details": details, name: odd})
        again = errors.status(error)
        assert isinstance(again["code"], int)
        assert isinstance(again["message"], str)
        assert all(isinstance(each, dict) for each in again.get("details", {}).get("causes", ()))


def test_a_status_says_only_what_is_known():
    assert errors.status(errors.ApiError("x")) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "x",
        "code": 500,
    }
    assert errors.status(errors.Expired("x", metadata={"continue": "t"}))["metadata"] == {"continue": "t"}
    assert errors.status(errors.BadRequest("x", details={}))["details"] == {}
    assert errors.ApiError("x", code=501, reason="NotImplemented").code == 501
    assert errors.Unauthorized().message == "Unauthorized"
