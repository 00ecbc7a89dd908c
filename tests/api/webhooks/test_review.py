"""What answers of webhooks say, and which of them are none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seamark.api.webhooks.review import LONGEST_SHOWN, LONGEST_YAML, REVIEWS, Refused, denial, read, unfit, verdict

HEAD = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}


@pytest.mark.parametrize(
    ("status", "type", "body", "why"),
    [
        (200, "application/json", b"{}", ""),
        (200, "application/json", b"", "0-length response with status code: 200 and content type: application/json"),
        (404, "text/plain", b"no", "the server could not find the requested resource"),
        (500, "application/json", b"x", 'an error on the server ("unknown") has prevented the request from succeeding'),
        (500, "text/plain", b"x\n", 'an error on the server ("x") has prevented the request from succeeding'),
        (403, "text/plain", b"not you", "not you"),
        (301, "", b"", "the server responded with the status code 301 but did not return more information"),
    ],
)
def test_an_answer_of_http_may_be_none(status: int, type: str, body: bytes, why: str) -> None:
    assert unfit(status, type, body) == why


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"hello", "cannot unmarshal string into Go value"),
        (b"[1]", "cannot unmarshal array into Go value"),
        (b"{}", "Object 'Kind' is missing in '{}'"),
        (b'{"kind":"AdmissionReview"}', "Object 'apiVersion' is missing in"),
        (b'{"kind":"X","apiVersion":"v1"}', 'no kind "X" is registered for version "v1" in scheme'),
        (b"a: [", "json parse error"),
        (b"a: " + b"x" * LONGEST_YAML, "the answer is too long, and no JSON"),
    ],
)
def test_a_body_may_be_no_review(body: bytes, why: str) -> None:
    with pytest.raises(Refused) as refused:
        read(body, REVIEWS)
    assert why in str(refused.value)


def test_little_of_a_long_answer_is_told() -> None:
    long = "x" * 10 * LONGEST_SHOWN
    for body in (
        f'{{"a":"{long}"}}',
        f'{{"kind":"{long}","apiVersion":"{long}"}}',
        f'{{"kind":["{long}"],"apiVersion":1}}',
    ):
        with pytest.raises(Refused) as refused:
            read(body.encode(), REVIEWS)
        assert len(str(refused.value)) < 3 * LONGEST_SHOWN
    for status in (403, 500):
        assert len(unfit(status, "text/plain", long.encode())) < 2 * LONGEST_SHOWN


def test_a_review_may_be_yaml() -> None:
    assert read(b"kind: AdmissionReview\napiVersion: admission.k8s.io/v1\n", REVIEWS) == HEAD


OLD = {**HEAD, "apiVersion": "admission.k8s.io/v1beta1"}


@pytest.mark.parametrize(
    ("answer", "mutating", "why"),
    [
        (HEAD, False, "webhook response was absent"),
        ({**HEAD, "response": {"uid": "v"}}, False, 'expected response.uid="u", got "v"'),
        ({**HEAD, "response": {"uid": "u", "allowed": "yes"}}, False, "cannot unmarshal"),
        ({**HEAD, "response": {"uid": "u", "status": {"message": 5}}}, False, "cannot unmarshal"),
        ({**HEAD, "response": {"uid": "u", "status": {"details": {"causes": [5]}}}}, False, "cannot unmarshal"),
        ({**HEAD, "response": {"uid": "u", "status": {"code": "x"}}}, False, "cannot unmarshal"),
        ({**OLD, "response": {"uid": "u"}}, False, "expected webhook response of admission.k8s.io/v1"),
        (
            {**HEAD, "response": {"uid": "u", "patch": "e30="}},
            False,
            "validating webhook may not return response.patch",
        ),
        ({**HEAD, "response": {"uid": "u", "patchType": ""}}, False, "may not return response.patchType"),
        ({**HEAD, "response": {"uid": "u", "patchType": ""}}, True, 'invalid response.patchType of ""'),
        ({**HEAD, "response": {"uid": "u", "patch": "e30="}}, True, "response.patch but not response.patchType"),
        ({**HEAD, "response": {"uid": "u", "patchType": "X"}}, True, "response.patchType but not response.patch"),
    ],
)
def test_a_review_may_be_no_answer(answer: Any, mutating: bool, why: str) -> None:
    with pytest.raises(Refused) as refused:
        verdict(answer, version="v1", uid="u", mutating=mutating)
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (None, 400, "denied the request without explanation"),
        ({"code": 200, "reason": "because"}, 400, "denied the request: because"),
        ({"code": 451, "message": "law", "reason": "Law"}, 451, "denied the request: law"),
        ({"code": 99999}, 400, "denied the request without explanation"),
        (json.loads('{"code": "x"}'), 400, "denied the request without explanation"),
    ],
)
def test_a_refusal_has_a_code_and_a_sentence(status: Any, code: int, message: str) -> None:
    error = denial("h.example.com", status)
    assert (error.code, error.message) == (code, f'admission webhook "h.example.com" {message}')
