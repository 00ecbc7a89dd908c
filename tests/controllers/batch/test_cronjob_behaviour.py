"""CronJobs on a real API server in virtual time."""

import msgspec
import pytest
from job_world import JobWorld, job_world
from own_cluster import own_cluster

from seamark.controllers.batch.cronjob import CronJob, Timetable, due
from seamark.kinds.resource import CRON_JOBS, JOBS
from seamark.kinds.values import times

START = times.parse("2026-03-28T12:00:30Z")
FIRST = int(times.parse("2026-03-28T12:01:00Z")) // 60


def at(minute):
    return f"c-{FIRST + minute}"


async def finish(world):
    for pod in await world.pods():
        await world.end(pod)


async def test_a_job_every_minute():
    async with job_world(START) as world:
        await world.cron_job()
        assert await world.jobs() == []
        await world.pass_(31)
        assert await world.jobs() == [at(0)]
        job = await world.cluster.get(JOBS, at(0), namespace="default")
        assert job["metadata"]["labels"]["l"] == "m"
        assert job["metadata"]["annotations"] == {
            "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-03-28T12:01:00Z"
        }
        status = await world.status("c", CRON_JOBS)
        assert status["lastScheduleTime"] == "2026-03-28T12:01:00Z"
        assert [(each["kind"], each["name"], each["uid"]) for each in status["active"]] == [
            ("Job", at(0), job["metadata"]["uid"])
        ]
        await finish(world)
        status = await world.status("c", CRON_JOBS)
        assert "active" not in status
        assert status["lastSuccessfulTime"] >= status["lastScheduleTime"]
        await world.pass_(120)
        assert await world.jobs() == [at(0), at(1), at(2)]
        told = await world.told("c")
        assert f"SuccessfulCreate: Created job {at(1)}" in told
        assert f"SawCompletedJob: Saw completed job: {at(0)}, condition: Complete" in told


async def test_nothing_is_written_between_two_times():
    async with job_world(START) as world:
        await world.cron_job(schedule="0 0 1 1 *")
        await world.settle()
        before = world.own.api.cache.revision
        await world.pass_(30 * 86400)
        assert world.own.api.cache.revision == before


async def test_a_schedule_that_never_comes_is_told_once():
    async with job_world(START) as world:
        await world.cron_job(schedule="59 23 31 2 *")
        await world.pass_(86400)
        reason = "time difference between two schedules is less than 1 second"
        assert await world.told("c") == [f"InvalidSchedule: invalid schedule: 59 23 31 2 * : {reason}"]


async def test_history_is_kept_so_long():
    async with job_world(START) as world:
        await world.cron_job(successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1, job={"backoffLimit": 0})
        for minute in range(6):
            await world.pass_(60)
            for pod in await world.pods():
                await world.end(pod, "Failed" if minute % 2 else "Succeeded")
        assert await world.jobs() == [at(2), at(4), at(5)]
        assert f"SuccessfulDelete: Deleted job {at(0)}" in await world.told("c")


@pytest.mark.parametrize(
    ("policy", "jobs", "reason"),
    [
        ("Allow", [at(0), at(1)], ""),
        ("Forbid", [at(0)], "JobAlreadyActive"),
        ("Replace", [at(1)], "SuccessfulDelete"),
    ],
)
async def test_a_job_that_is_not_done_when_the_next_is_due(policy, jobs, reason):
    async with job_world(START) as world:
        await world.cron_job(concurrencyPolicy=policy)
        await world.pass_(95)
        assert await world.jobs() == jobs
        told = [each.partition(":")[0] for each in await world.told("c")]
        assert not reason or told.count(reason) == 1
        if policy == "Forbid":
            await finish(world)
            assert await world.jobs() == [at(0), at(1)], "as soon as it may"


async def test_suspended():
    async with job_world(START) as world:
        await world.cron_job(suspend=True)
        await world.pass_(300)
        assert await world.jobs() == []
        await world.patch(CRON_JOBS, "c", suspend=False)
        assert await world.jobs() == [at(4)], "the last of those that were missed"


async def test_a_time_zone():
    async with job_world(START) as world:
        await world.cron_job(schedule="30 14 * * *", timeZone="Europe/Zurich")
        await world.pass_(3600)
        assert await world.jobs() == []
        await world.pass_(1800)
        [name] = await world.jobs()
        made = await world.cluster.get(JOBS, name, namespace="default")
        stamp = made["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
        assert stamp == "2026-03-28T14:30:00+01:00"


async def test_a_time_that_was_missed_by_too_much_is_not_made_up_for():
    async with own_cluster() as own:
        own.clock.now = START
        world = JobWorld(own)
        await world.cron_job("late", "0 * * * *", startingDeadlineSeconds=600)
        await world.cron_job("patient", "0 * * * *")
        own.clock.now = START + 4 * 3600 - 30
        async with world.controlled():
            await world.settle()
            assert await world.jobs() == [f"late-{FIRST + 239}", f"patient-{FIRST + 239}"]
    async with own_cluster() as own:
        own.clock.now = START
        world = JobWorld(own)
        await world.cron_job("late", "0 * * * *", startingDeadlineSeconds=600)
        own.clock.now = START + 4 * 3600 + 1200
        async with world.controlled():
            await world.settle()
            assert await world.jobs() == []
            assert await world.told("late") == []  # as in Kubernetes, a time before the deadline is not even looked at


async def test_many_missed_times_are_one_job_and_a_warning():
    async with own_cluster() as own:
        own.clock.now = START
        world = JobWorld(own)
        await world.cron_job()
        own.clock.now = START + 365 * 86400
        async with world.controlled():
            await world.settle()
            assert await world.jobs() == [f"c-{int(own.clock.now) // 60}"]
            assert any(each.startswith("TooManyMissedTimes: too many missed") for each in await world.told("c"))


async def test_a_job_that_was_made_before_the_status_was_lost_is_found_again():
    async with job_world(START) as world:
        await world.cron_job()
        await world.pass_(31)
        gone = {"status": {"active": None, "lastScheduleTime": None}}
        await world.cluster.patch(CRON_JOBS, "c", gone, namespace="default", subresource="status")
        await world.settle()
        assert await world.jobs() == [at(0)]
        status = await world.status("c", CRON_JOBS)
        assert [each["name"] for each in status["active"]] == [at(0)]
        assert status["lastScheduleTime"] == "2026-03-28T12:01:00Z"


async def test_an_active_job_that_vanishes():
    async with job_world(START) as world:
        await world.cron_job()
        await world.pass_(31)
        await world.remove(JOBS, at(0), propagation="Background")
        assert "active" not in await world.status("c", CRON_JOBS)
        assert f"MissingJob: Active job went missing: {at(0)}" in await world.told("c")


async def test_its_jobs_go_with_it():
    async with job_world(START) as world:
        await world.cron_job()
        await world.pass_(31)
        await world.remove(CRON_JOBS, "c", propagation="Background")
        await world.pass_(60)
        assert await world.jobs() == []
        assert await world.pods(phase=None) == []


# --- when (pure) -----------------------------------------------------------------------------------


def cron(schedule, last=None, **spec):
    made = {
        "metadata": {"name": "c", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"schedule": schedule, **spec},
        "status": {"lastScheduleTime": last} if last else {},
    }
    return msgspec.convert(made, CronJob)


def when(job, now):
    found = due(job, Timetable.of(job.spec), times.parse(now))
    return (times.text(found.at) if found.at is not None else None), found.many, round(found.wait or 0, 1)


@pytest.mark.parametrize(
    ("job", "now", "expected"),
    [
        (cron("0 * * * *"), "2026-01-01T00:30:00Z", (None, False, 1800.1)),
        (cron("0 * * * *"), "2026-01-01T01:00:00Z", ("2026-01-01T01:00:00Z", False, 3600.1)),
        (cron("0 * * * *", "2026-01-01T01:00:00Z"), "2026-01-01T01:00:05Z", (None, False, 3595.1)),
        (cron("0 * * * *"), "2026-01-02T00:30:00Z", ("2026-01-02T00:00:00Z", False, 1800.1)),
        (cron("0 * * * *"), "2026-02-02T00:30:00Z", ("2026-02-02T00:00:00Z", True, 1800.1)),
        (
            cron("0 * * * *", startingDeadlineSeconds=7200),
            "2026-02-02T00:30:00Z",
            ("2026-02-02T00:00:00Z", False, 1800.1),
        ),
        (cron("30 6-16/4 * * 1-5"), "2026-01-12T09:00:00Z", ("2026-01-12T06:30:00Z", False, 5400.1)),
        (cron("@every 10m"), "2026-01-01T00:35:00Z", ("2026-01-01T00:30:00Z", False, 300.1)),
        (cron("0 0 30 2 *"), "2026-02-02T00:30:00Z", (None, False, 0.0)),
        (cron("TZ=Asia/Tokyo 0 0 * * *"), "2026-01-01T15:00:00Z", ("2026-01-01T15:00:00Z", False, 86400.1)),
    ],
)
def test_due(job, now, expected):
    assert when(job, now) == expected


def test_an_unknown_zone_is_an_error():
    with pytest.raises(LookupError):
        Timetable.of(cron("@daily", timeZone="Mars/Olympus").spec)
