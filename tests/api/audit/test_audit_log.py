"""The lines of the audit log."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
from pathlib import Path

import pytest

from seamark.api.audit.log import AuditLog
from seamark.api.audit.policy import API_VERSION, Policy, Rule
from seamark.api.authorization import ALLOWED, Attributes, User
from seamark.metrics import Registry
from virtual_time import VirtualClock

ANN = User("ann", ("admins",), "42")
SCALE = Attributes("patch", "apps", "v1", "deployments", "scale", "shop", "web")
OBJECT = {"kind": "Scale", "metadata": {"name": "web", "managedFields": [{"manager": "x"}]}}


def opened(file: Path, level: str, *, folder: Path | None = None, **more) -> AuditLog:
    if folder is not None:
        folder.mkdir()
    policy = Policy(API_VERSION, "Policy", (Rule(level, **more),))
    return AuditLog(file, policy=policy, clock=VirtualClock(1_700_000_000.25), metrics=Registry())


def lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def logged(file: Path, level: str, *, code: int = 200, answer: object = OBJECT, **more) -> list[dict]:
    audit = opened(file, level, **more)
    audited = audit.begin(ANN, SCALE, uri="/apis/apps/v1/…/scale?force=1", address="192.0.2.1", agent="kubectl")
    if audited is not None:
        audited.code, audited.request_object, audited.response_object = code, {"spec": {}}, answer
        audited.decision = ALLOWED
        audit.write(audited, "ResponseComplete")
    audit.close()
    return lines(file)


def test_metadata_says_who_did_what_and_nothing_else(tmp_path: Path) -> None:
    received, complete = logged(tmp_path / "audit.log", "Metadata")
    assert received["stage"] == "RequestReceived"
    assert "responseStatus" not in received
    assert complete.pop("auditID") == received["auditID"]
    assert complete == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "requestURI": "/apis/apps/v1/…/scale?force=1",
        "verb": "patch",
        "user": {"username": "ann", "uid": "42", "groups": ["admins"]},
        "sourceIPs": ["192.0.2.1"],
        "userAgent": "kubectl",
        "objectRef": {
            "resource": "deployments",
            "namespace": "shop",
            "name": "web",
            "apiGroup": "apps",
            "apiVersion": "v1",
            "subresource": "scale",
        },
        "responseStatus": {"metadata": {}, "code": 200},
        "requestReceivedTimestamp": "2023-11-14T22:13:20.250000Z",
        "stageTimestamp": "2023-11-14T22:13:20.250000Z",
        "annotations": {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""},
    }
    assert stat.S_IMODE((tmp_path / "audit.log").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("level", "contents"),
    [
        ("None", None),
        ("Metadata", set()),
        ("Request", {"requestObject"}),
        ("RequestResponse", {"requestObject", "responseObject"}),
    ],
)
def test_contents_are_logged_by_level(tmp_path: Path, level: str, contents: set[str] | None) -> None:
    found = logged(tmp_path / "audit.log", level)
    if contents is None:
        assert found == []
    else:
        assert {name for name in found[-1] if name.endswith("Object")} == contents


def test_managed_fields_can_be_left_out(tmp_path: Path) -> None:
    listed = {"kind": "ScaleList", "metadata": {}, "items": [OBJECT, OBJECT]}
    found = logged(tmp_path / "audit.log", "RequestResponse", answer=listed, omit_managed_fields=True)
    assert [item["metadata"] for item in found[-1]["responseObject"]["items"]] == [{"name": "web"}] * 2
    assert OBJECT["metadata"]["managedFields"], "the answer itself must stay as it is"


def test_a_refusal_says_why_at_every_level(tmp_path: Path) -> None:
    status = {"kind": "Status", "status": "Failure", "message": "no", "reason": "Forbidden", "code": 403}
    found = logged(tmp_path / "audit.log", "Metadata", code=403, answer=status)
    assert found[-1]["responseStatus"] == {
        "metadata": {},
        "code": 403,
        "status": "Failure",
        "message": "no",
        "reason": "Forbidden",
    }


def test_a_rotated_file_is_begun_anew(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    audit = opened(file, "Metadata", omit_stages=("RequestReceived",))
    for number in range(3):
        audited = audit.begin(ANN, SCALE, uri=f"/{number}", address="", agent="")
        assert audited is not None
        audit.write(audited, "ResponseComplete")
        if number == 0:
            file.rename(tmp_path / "audit.log.1")
        elif number == 1:
            file.unlink()
    audit.close()
    assert [line["requestURI"] for line in lines(tmp_path / "audit.log.1")] == ["/0"]
    assert [line["requestURI"] for line in lines(file)] == ["/2"]


def test_a_file_that_cannot_be_begun_anew_closes_nothing_of_others(tmp_path: Path) -> None:
    audit = opened(tmp_path / "logs" / "audit.log", "Metadata", folder=tmp_path / "logs")
    (tmp_path / "logs").rename(tmp_path / "old")
    with (tmp_path / "other").open("wb") as other:
        for _ in range(3):
            audit.begin(ANN, SCALE, uri="/", address="", agent="")
            with (tmp_path / "third").open("wb") as third:  # would get the number of a file that was closed
                audit.begin(ANN, SCALE, uri="/", address="", agent="")
                third.write(b"mine")
        other.write(b"mine")
    assert [(tmp_path / name).read_bytes() for name in ("other", "third")] == [b"mine", b"mine"]
    (tmp_path / "logs").mkdir()
    audit.begin(ANN, SCALE, uri="/again", address="", agent="")
    audit.close()
    assert [line["requestURI"] for line in lines(tmp_path / "logs" / "audit.log")] == ["/again"]


def test_an_event_that_was_cut_short_spoils_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "audit.log"
    audit, write, room = opened(file, "Metadata"), os.write, [10, 0]

    def full(descriptor: int, data: bytes) -> int:
        if not (size := room.pop(0)):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[:size])

    monkeypatch.setattr(os, "write", full)
    audit.begin(ANN, SCALE, uri="/lost", address="", agent="")
    monkeypatch.undo()
    for uri in ("/1", "/2"):
        audit.begin(ANN, SCALE, uri=uri, address="", agent="")
    audit.close()
    cut, *rest = file.read_text().splitlines()
    assert (len(cut), [json.loads(line)["requestURI"] for line in rest]) == (10, ["/1", "/2"])


def test_what_is_nested_too_deep_to_be_written_is_left_out(tmp_path: Path) -> None:
    deep: list = []
    for _ in range(100_000):  # deeper than any Python's encoder goes
        deep = [deep]
    (_, complete) = logged(tmp_path / "audit.log", "RequestResponse", answer=deep)
    assert (complete["verb"], "responseObject" in complete) == ("patch", False)


def test_a_full_disk_is_counted_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Registry()
    audit = AuditLog(Path("/dev/full"), clock=VirtualClock(), metrics=metrics)
    audited = audit.begin(ANN, SCALE, uri="/", address="", agent="")
    assert audited is not None
    with caplog.at_level(logging.ERROR):
        audit.write(audited, "ResponseComplete")
        audit.write(audited, "ResponseComplete")
    audit.close()
    assert "seamark_audit_events_lost_total 2" in metrics.text()
    assert caplog.text.count("No space left") == 1


def test_a_pipe_that_is_not_read_delays_nothing(tmp_path: Path) -> None:
    file = tmp_path / "pipe"
    os.mkfifo(file)
    metrics = Registry()
    with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        policy = Policy(API_VERSION, "Policy", (Rule("Metadata"),))
        audit = AuditLog(file, policy=policy, clock=VirtualClock(), metrics=metrics)
        while "seamark_audit_events_lost_total 0" in metrics.text():
            audit.begin(ANN, SCALE, uri=f"/{'x' * 10_000}", address="", agent="")
        *whole, _ = reader.read().split(b"\n")
        assert f"seamark_audit_events_total {len(whole)}" in metrics.text()
        audit.begin(ANN, SCALE, uri="/last", address="", agent="")
        assert json.loads(reader.read().splitlines()[-1])["requestURI"] == "/last"
        audit.close()
