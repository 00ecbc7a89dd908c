"""Jobs on a real API server in virtual time: their Pods, their counters and their end."""

import random

import pytest
from job_world import POD, JobWorld, job_world
from own_cluster import own_cluster

from seamark.errors import ServiceUnavailable
from seamark.kinds.resource import EVENTS, JOBS, PODS

COMPLETE = [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")]


def failed(reason):
    return [("FailureTarget", reason), ("Failed", reason)]


async def test_one_pod_and_done():
    async with job_world() as world:
        await world.job()
        [pod] = await world.pods()
        assert pod["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
        assert await world.counts() == (1, 0, 0)
        await world.end(pod)
        assert await world.counts() == (0, 1, 0)
        assert await world.conditions() == COMPLETE
        status = await world.status()
        assert status["completionTime"] >= status["startTime"]
        [pod] = await world.pods(phase="Succeeded")
        assert "finalizers" not in pod["metadata"]
        assert "Completed: Job completed" in await world.told()


async def test_so_many_at_a_time_until_there_are_enough():
    async with job_world() as world:
        await world.job(completions=5, parallelism=2)
        for done in range(5):
            assert await world.counts() == (min(2, 5 - done), done, 0)
            await world.end((await world.pods())[0])
        assert await world.counts() == (0, 5, 0)
        assert await world.conditions() == COMPLETE


async def test_without_completions_one_success_is_enough_and_the_others_finish():
    async with job_world() as world:
        await world.job(parallelism=3)
        first, second, third = await world.pods()
        await world.end(first)
        assert await world.counts() == (2, 1, 0)
        await world.end(second, "Failed")
        await world.pass_(60)
        assert await world.counts() == (1, 1, 1)
        assert await world.conditions() == []
        await world.end(third)
        assert await world.counts() == (0, 2, 1)
        assert await world.conditions() == COMPLETE


async def test_failures_are_retried_later_each_time_until_there_were_too_many():
    async with job_world() as world:
        await world.job(backoffLimit=2)
        for delay in (10, 20):
            await world.end((await world.pods())[0], "Failed")
            await world.pass_(delay - 3)
            assert await world.pods() == []
            await world.pass_(3)
            assert len(await world.pods()) == 1
        await world.end((await world.pods())[0], "Failed")
        assert await world.counts() == (0, 0, 3)
        assert await world.conditions() == failed("BackoffLimitExceeded")
        assert "BackoffLimitExceeded: Job has reached the specified backoff limit" in await world.told()
        assert len(await world.pods(phase="Failed")) == 3


async def test_the_pods_of_a_failed_job_are_stopped_and_count_as_failed():
    async with job_world() as world:
        await world.job(backoffLimit=0, parallelism=3, completions=3)
        await world.end((await world.pods())[0], "Failed")
        assert await world.pods() == []
        assert await world.counts() == (0, 0, 3)
        assert await world.conditions() == failed("BackoffLimitExceeded")


async def test_it_ends_only_when_its_last_pod_has():
    async with job_world() as world:
        await world.job(backoffLimit=0, parallelism=2, completions=2)
        first, second = await world.pods()
        await world.run(second)
        await world.end(first, "Failed")
        assert await world.conditions() == [("FailureTarget", "BackoffLimitExceeded")]
        assert (await world.status())["terminating"] == 1
        await world.remove(PODS, second["metadata"]["name"], grace_seconds=0)
        assert (await world.status())["terminating"] == 0
        assert await world.conditions() == failed("BackoffLimitExceeded")


async def test_containers_that_restart_too_often_fail_the_job():
    async with job_world() as world:
        await world.job(backoffLimit=3, pod={"restartPolicy": "OnFailure"})
        [pod] = await world.pods()
        ready = [{"type": "Ready", "status": "False"}]
        status = {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 3, "state": {}}
        await world.set_status(pod, phase="Running", conditions=ready, containerStatuses=[status])
        assert await world.conditions() == failed("BackoffLimitExceeded")


async def test_a_deadline():
    async with job_world() as world:
        await world.job(activeDeadlineSeconds=100)
        await world.pass_(99)
        assert await world.counts() == (1, 0, 0)
        await world.pass_(2)
        assert await world.counts() == (0, 0, 1)
        assert await world.conditions() == failed("DeadlineExceeded")


async def test_suspending_stops_the_clock_and_the_pods_without_blame():
    async with job_world() as world:
        await world.job(activeDeadlineSeconds=100, suspend=True)
        assert await world.pods() == []
        assert await world.conditions() == [("Suspended", "JobSuspended")]
        assert "startTime" not in await world.status()
        await world.pass_(500)
        await world.patch(JOBS, "j", suspend=False)
        assert await world.counts() == (1, 0, 0)
        await world.pass_(50)
        await world.patch(JOBS, "j", suspend=True)
        assert await world.counts() == (0, 0, 0)
        assert await world.pods(phase=None) == []
        await world.patch(JOBS, "j", suspend=False)
        await world.pass_(99)
        assert await world.conditions() == []
        await world.pass_(2)
        assert await world.conditions() == failed("DeadlineExceeded")
        told = [each.partition(":")[0] for each in await world.told()]
        assert {"Suspended", "Resumed"} <= set(told)


async def test_fewer_at_a_time():
    async with job_world() as world:
        await world.job(completions=10, parallelism=4)
        await world.patch(JOBS, "j", parallelism=1)
        assert await world.counts() == (1, 0, 0)
        assert len(await world.pods(phase=None)) == 1
        await world.patch(JOBS, "j", parallelism=0)
        assert await world.counts() == (0, 0, 0)


async def test_afterwards_it_goes():
    async with job_world() as world:
        await world.job(ttlSecondsAfterFinished=100)
        await world.end((await world.pods())[0])
        await world.pass_(99)
        assert await world.exists(JOBS, "j")
        await world.pass_(2)
        assert not await world.exists(JOBS, "j")
        assert await world.pods(phase=None) == []


async def test_another_manager_is_left_to_it():
    async with job_world() as world:
        await world.job(managedBy="example.com/mine")
        assert await world.pods() == []
        assert await world.status() == {}


# --- indexes ---------------------------------------------------------------------------------------


async def test_indexes():
    async with job_world() as world:
        await world.job(completionMode="Indexed", completions=5, parallelism=3)
        assert await world.indexes() == [0, 1, 2]
        [pod] = await world.pods(1)
        assert pod["spec"]["hostname"] == "j-1"
        assert pod["metadata"]["generateName"] == "j-1-"
        assert pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "1"
        await world.end(pod)
        assert await world.indexes() == [0, 2, 3]
        assert (await world.status())["completedIndexes"] == "1"
        for index in (3, 2, 4, 0):
            await world.end((await world.pods(index))[0])
        status = await world.status()
        assert (status["completedIndexes"], status["succeeded"]) == ("0-4", 5)
        assert await world.conditions() == COMPLETE


async def test_a_failed_index_is_tried_again():
    async with job_world() as world:
        await world.job(completionMode="Indexed", completions=2, parallelism=2)
        await world.end((await world.pods(1))[0], "Failed")
        assert await world.indexes() == [0]
        await world.pass_(11)
        assert await world.indexes() == [0, 1]
        assert await world.counts() == (2, 0, 1)


async def test_an_index_with_two_pods_keeps_one():
    async with job_world() as world:
        await world.job(completionMode="Indexed", completions=2, parallelism=2)
        [pod] = await world.pods(1)
        twin = {
            **pod,
            "metadata": {
                key: value
                for key, value in pod["metadata"].items()
                if key in ("labels", "annotations", "ownerReferences", "finalizers")
            },
        }
        twin["metadata"]["name"] = "twin"
        twin.pop("status")
        await world.cluster.create(PODS, twin, namespace="default")
        await world.settle()
        assert await world.indexes() == [0, 1]


async def test_attempts_per_index():
    async with job_world() as world:
        await world.job(completionMode="Indexed", completions=3, parallelism=3, backoffLimitPerIndex=1)
        await world.end((await world.pods(0))[0])
        [pod] = await world.pods(1)
        assert pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] == "0"
        await world.end(pod, "Failed")
        assert await world.indexes() == [2]
        await world.pass_(11)
        [pod] = await world.pods(1)
        assert pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] == "1"
        await world.end(pod, "Failed")
        assert (await world.status())["failedIndexes"] == "1"
        assert await world.conditions() == []
        await world.end((await world.pods(2))[0])
        assert await world.conditions() == failed("FailedIndexes")
        assert await world.counts() == (0, 2, 2)


async def test_too_many_failed_indexes():
    async with job_world() as world:
        await world.job(
            completionMode="Indexed", completions=4, parallelism=4, backoffLimitPerIndex=0, maxFailedIndexes=1
        )
        await world.end((await world.pods(0))[0], "Failed")
        assert await world.conditions() == []
        await world.end((await world.pods(1))[0], "Failed")
        assert await world.conditions() == failed("MaxFailedIndexesExceeded")
        assert (await world.status())["failedIndexes"] == "0,1"


@pytest.mark.parametrize(
    ("rule", "index"),
    [
        ({"succeededIndexes": "0,2"}, 2),
        ({"succeededCount": 2}, 1),
        ({"succeededIndexes": "1-3", "succeededCount": 1}, 3),
    ],
)
async def test_success_by_policy(rule, index):
    async with job_world() as world:
        rules = [{"succeededCount": 4}, rule]
        await world.job(completionMode="Indexed", completions=4, parallelism=4, successPolicy={"rules": rules})
        await world.end((await world.pods(0))[0])
        assert await world.conditions() == []
        await world.end((await world.pods(index))[0])
        assert await world.conditions() == [("SuccessCriteriaMet", "SuccessPolicy"), ("Complete", "SuccessPolicy")]
        assert (await world.status())["conditions"][-1]["message"] == "Matched rules at index 1"
        assert await world.counts() == (0, 2, 0)
        assert await world.pods() == []


async def test_an_indexed_job_that_grows_and_shrinks():
    async with job_world() as world:
        await world.job(completionMode="Indexed", completions=3, parallelism=3)
        await world.end((await world.pods(2))[0])
        await world.patch(JOBS, "j", completions=2, parallelism=2)
        assert (await world.status()).get("completedIndexes", "") == ""
        await world.patch(JOBS, "j", completions=4, parallelism=4)
        assert await world.indexes() == [0, 1, 2, 3]


# --- policies --------------------------------------------------------------------------------------


def policy(action, **how):
    return {"rules": [{"action": action, **how}]}


async def test_a_policy_without_rules_counts_every_failure():
    async with job_world() as world:
        await world.job(backoffLimit=0, podFailurePolicy={})
        await world.end((await world.pods())[0], "Failed", 7)
        assert await world.conditions() == failed("BackoffLimitExceeded")


async def test_an_exit_code_that_fails_the_job():
    codes = {"operator": "In", "values": [42]}
    async with job_world() as world:
        await world.job(podFailurePolicy=policy("FailJob", onExitCodes=codes))
        await world.end((await world.pods())[0], "Failed", 7)
        assert await world.conditions() == []
        await world.pass_(11)
        [pod] = await world.pods()
        await world.end(pod, "Failed", 42)
        assert await world.conditions() == failed("PodFailurePolicy")
        name = pod["metadata"]["name"]
        assert (await world.status())["conditions"][-1]["message"] == (
            f"Container c for pod default/{name} failed with exit code 42 matching FailJob rule at index 0"
        )


async def test_a_disruption_that_is_not_counted():
    async with job_world() as world:
        ignored = policy("Ignore", onPodConditions=[{"type": "DisruptionTarget"}])
        await world.job(backoffLimit=0, podFailurePolicy=ignored)
        disrupted = [{"type": "DisruptionTarget", "status": "True"}]
        await world.end((await world.pods())[0], "Failed", conditions=disrupted)
        await world.pass_(11)
        assert await world.counts() == (1, 0, 0)
        assert "finalizers" not in (await world.pods(phase="Failed"))[0]["metadata"]


async def test_an_exit_code_that_fails_the_index():
    codes = {"operator": "NotIn", "values": [1, 2]}
    async with job_world() as world:
        await world.job(
            completionMode="Indexed",
            completions=2,
            parallelism=2,
            backoffLimitPerIndex=5,
            podFailurePolicy=policy("FailIndex", onExitCodes=codes),
        )
        await world.end((await world.pods(0))[0], "Failed", 3)
        assert (await world.status())["failedIndexes"] == "0"
        await world.end((await world.pods(1))[0], "Failed", 2)
        await world.pass_(11)
        assert await world.indexes() == [1]


async def test_a_pod_that_is_deleted_is_replaced_at_once_or_when_it_is_gone():
    async with job_world() as world:
        await world.job("eager", labels={"of": "eager"})
        await world.job("patient", labels={"of": "patient"}, podReplacementPolicy="Failed")
        for pod in await world.pods():
            name = pod["metadata"]["name"]
            await world.run(pod)
            await world.remove(PODS, name)
        await world.pass_(11)
        assert [pod["metadata"]["labels"]["of"] for pod in await world.pods()] == ["eager"]
        assert (await world.status("patient"))["terminating"] == 1
        leaving = [pod for pod in await world.pods(phase=None) if pod["metadata"]["labels"]["of"] == "patient"]
        await world.end(leaving[0], "Failed")
        await world.pass_(11)
        assert [pod["metadata"]["labels"]["of"] for pod in await world.pods()] == ["eager", "patient"]


# --- ownership -------------------------------------------------------------------------------------


async def test_orphans_are_adopted_and_counted():
    async with job_world() as world:
        orphan = {"metadata": {"name": "orphan", "labels": {"a": "b"}}, "spec": POD}
        await world.cluster.create(PODS, orphan, namespace="default")
        await world.job(labels={"a": "b"}, manualSelector=True, selector={"matchLabels": {"a": "b"}})
        [pod] = await world.pods()
        assert pod["metadata"]["name"] == "orphan"
        assert pod["metadata"]["ownerReferences"][0]["name"] == "j"
        await world.end(pod)
        assert await world.counts() == (0, 1, 0)
        assert await world.conditions() == COMPLETE


async def test_a_pod_that_no_longer_matches_is_released():
    async with job_world() as world:
        await world.job(labels={"a": "b"}, manualSelector=True, selector={"matchLabels": {"a": "b"}})
        [pod] = await world.pods()
        name = pod["metadata"]["name"]
        await world.cluster.patch(PODS, name, {"metadata": {"labels": {"a": "c"}}}, namespace="default")
        await world.settle()
        released = await world.cluster.get(PODS, name, namespace="default")
        assert not {"ownerReferences", "finalizers"} & released["metadata"].keys()
        assert len(await world.pods()) == 2


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
async def test_pods_of_a_deleted_job_are_freed(propagation):
    async with job_world() as world:
        await world.job(parallelism=2, completions=2)
        await world.remove(JOBS, "j", propagation=propagation)
        await world.pass_(60)
        assert not await world.exists(JOBS, "j")
        pods = await world.pods(phase=None)
        assert len(pods) == (2 if propagation == "Orphan" else 0)
        assert not any("finalizers" in pod["metadata"] for pod in pods)


# --- faults ----------------------------------------------------------------------------------------


class Flaky:
    """A cluster that loses every third answer to a write; the write itself was made."""

    def __init__(self, cluster):
        self._cluster = cluster
        self._writes = 0

    def __getattr__(self, verb):
        method = getattr(self._cluster, verb)
        if verb not in ("create", "patch", "delete"):
            return method

        async def write(resource, *arguments, **more):
            answer = await method(resource, *arguments, **more)
            self._writes += resource is not EVENTS
            if self._writes % 3 == 0 and resource is not EVENTS:
                raise ServiceUnavailable("the answer is lost", retry_after=1)
            return answer

        return write


async def test_each_pod_is_counted_once_whatever_is_lost():
    async with own_cluster() as own:
        world = JobWorld(own)
        async with world.controlled(through=Flaky):
            await world.job(completions=12, parallelism=4, backoffLimit=100)
            ended = 0
            for _ in range(200):
                pods = await world.pods()
                if pods:
                    ended += 1
                    await world.end(pods[0], "Failed" if ended % 5 == 0 else "Succeeded")
                await world.pass_(30)
                if "completionTime" in await world.status():
                    break
            finished = await world.pods(phase="Succeeded")
            assert len(finished) >= 12
            failures = len(await world.pods(phase="Failed"))
            assert await world.counts() == (0, len(finished), failures)
            assert not any("finalizers" in pod["metadata"] for pod in await world.pods(phase=None))


async def test_a_restart_counts_what_ended_meanwhile():
    async with own_cluster() as own:
        world = JobWorld(own)
        async with world.controlled():
            await world.job(completions=3, parallelism=3)
        for pod in await world.pods():
            await world.end(pod)
        async with world.controlled():
            await world.settle()
            assert await world.counts() == (0, 3, 0)
            assert await world.conditions() == COMPLETE


async def test_two_billion_pods_are_made_step_by_step():
    async with job_world() as world:
        await world.job("many", parallelism=2**31 - 1, completions=2**31 - 1, suspend=True)
        await world.job("indexed", completionMode="Indexed", parallelism=100, completions=2**31 - 1)
        assert (await world.status("indexed"))["active"] == 100


async def test_a_generated_name_that_is_taken_leaves_no_traces():
    class Chance(random.Random):
        """Makes up the same name twice, then another."""

        endings = iter(("aaaaa", "aaaaa", "bbbbb"))

        def choices(self, population, **more):
            return next(self.endings)

    async with own_cluster(chance=Chance()) as own:
        made = {
            "metadata": {"generateName": "j-"},
            "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": POD}},
        }
        await own.cluster.create(JOBS, made, namespace="default")
        second = await own.cluster.create(JOBS, made, namespace="default")
        uid, labels = second["metadata"]["uid"], second["spec"]["template"]["metadata"]["labels"]
        assert second["metadata"]["name"] == labels["job-name"] == "j-bbbbb"
        assert labels["controller-uid"] == uid
        assert second["spec"]["selector"]["matchLabels"] == {"batch.kubernetes.io/controller-uid": uid}
        assert second["metadata"]["labels"] == labels
