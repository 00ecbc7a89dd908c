"""CronJob as an object."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from kind_rules import change, create, sentences

from seamark.errors import Invalid, Object
from seamark.kinds.batch.cronjob import CRON_JOB, time_zone, without_zone

POD: Object = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}


def cronjob(name: str = "c", schedule: str = "@daily", job: Object | None = None, **spec: Any) -> Object:
    template = {"spec": {"template": {"spec": POD}, **(job or {})}}
    return {"metadata": {"name": name, "uid": "u"}, "spec": {"schedule": schedule, "jobTemplate": template, **spec}}


def refusals(*arguments: Any, **fields: Any) -> list[str]:
    with pytest.raises(Invalid) as refused:
        create(CRON_JOB, cronjob(*arguments, **fields))
    return sentences(refused.value)


def test_names_leave_room_for_those_of_jobs() -> None:
    assert refusals(name="x" * 53) == [
        f'metadata.name: Invalid value: "{"x" * 53}": must be no more than 52 characters'
    ]


def test_the_selector_of_its_jobs_is_generated() -> None:
    path = "spec.jobTemplate.spec"
    assert refusals(job={"selector": {"matchLabels": {"a": "b"}}, "manualSelector": True}) == [
        f'{path}.selector: Invalid value: {{"matchLabels":{{"a":"b"}}}}: `selector` will be auto-generated',
        f'{path}.manualSelector: Unsupported value: true: supported values: "nil", "false"',
    ]


def test_a_zone_in_an_old_schedule_may_stay() -> None:
    old = create(CRON_JOB, cronjob())
    old["spec"]["schedule"] = "TZ=UTC 0 0 * * *"
    new = copy.deepcopy(old)
    new["spec"]["suspend"] = True
    changed = change(CRON_JOB, old, new)
    assert changed["metadata"]["generation"] == 2
    [warning] = CRON_JOB.warnings(changed, old)
    assert warning.startswith("CRON_TZ or TZ used in spec.schedule is not officially supported")
    new["spec"]["timeZone"] = "Europe/Zurich"
    with pytest.raises(Invalid) as refused:
        change(CRON_JOB, old, new)
    assert "cannot use both timeZone field and TZ" in sentences(refused.value)[0]


def test_zones() -> None:
    assert without_zone("CRON_TZ=Asia/Tokyo 0 0 * * *") == ("Asia/Tokyo", "0 0 * * *")
    assert without_zone("@daily") == ("", "@daily")
    assert time_zone("Asia/Tokyo") is not None
    assert [time_zone(name) for name in ("Mars/Olympus", "../etc/passwd", "Europe")] == [None, None, None]


def test_row() -> None:
    made = create(CRON_JOB, cronjob(timeZone="Asia/Tokyo"))
    made["status"] = {"active": [{}], "lastScheduleTime": "2026-01-01T00:00:00Z"}
    assert CRON_JOB.row(made, 1767225660.0)[1:6] == ["@daily", "Asia/Tokyo", "False", 1, "60s"]
