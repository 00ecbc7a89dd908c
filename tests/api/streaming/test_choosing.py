"""Which container and which log a request means, and how it is refused."""

from __future__ import annotations

import pytest

from seamark import errors
from seamark.access.pod_streams import STDIN, STDOUT, Command, LogOptions
from seamark.api.streaming import choosing

RUNS = {"running": {"startedAt": "2026-11-17T07:00:00Z"}}
ENDED = {"terminated": {"exitCode": 1}}


def pod(*names, state=None, last=None, restarts=0, **spec):
    status = {"name": "a", "state": state or {}, "lastState": last or {}, "restartCount": restarts}
    return {
        "metadata": {"name": "x"},
        "spec": {"nodeName": "n", "containers": [{"name": each} for each in names], **spec},
        "status": {"phase": "Running", "containerStatuses": [status]},
    }


def sentence(action, *arguments, **options):
    with pytest.raises(errors.ApiError) as refused:
        action(*arguments, **options)
    return refused.value.code, refused.value.message


def test_the_only_container_need_not_be_named():
    assert choosing.container_of(pod("a"), "") == "a"
    assert choosing.container_of(pod("a", initContainers=[{"name": "i"}]), "i") == "i"


def test_of_several_containers_one_must_be_named():
    assert sentence(choosing.container_of, pod("a", "b"), "") == (
        400,
        "a container name must be specified for pod x, choose one of: [a b]",
    )
    many = pod("a", "b", initContainers=[{"name": "i"}], ephemeralContainers=[{"name": "e"}])
    assert sentence(choosing.container_of, many, "")[1] == (
        "a container name must be specified for pod x, choose one of: [a b] or one of the init containers: [i] "
        "or one of the ephemeral containers: [e]"
    )
    assert sentence(choosing.container_of, pod("a"), "c") == (400, "container c is not valid for pod x")


@pytest.mark.parametrize(
    ("state", "last", "restarts", "current", "previous"),
    [
        (RUNS, {}, 0, 0, 'previous terminated container "a" in pod "x" not found'),
        (RUNS, ENDED, 2, 2, 1),
        (ENDED, {}, 0, 0, 'previous terminated container "a" in pod "x" not found'),
        (ENDED, ENDED, 1, 1, 0),
        ({"waiting": {"reason": "CrashLoopBackOff"}}, ENDED, 3, 3, 3),
        (
            {"waiting": {"reason": "ContainerCreating"}},
            {},
            0,
            'container "a" in pod "x" is waiting to start: ContainerCreating',
            'previous terminated container "a" in pod "x" not found',
        ),
        (
            {"waiting": {"reason": "ErrImagePull"}},
            {},
            0,
            'container "a" in pod "x" is waiting to start: image can\'t be pulled',
            'previous terminated container "a" in pod "x" not found',
        ),
        (
            {},
            {},
            0,
            'container "a" in pod "x" is waiting to start - no logs yet',
            'previous terminated container "a" in pod "x" not found',
        ),
    ],
)
def test_which_run_of_a_container(state, last, restarts, current, previous):
    made = pod("a", state=state, last=last, restarts=restarts)
    for wanted, earlier in ((current, False), (previous, True)):
        if isinstance(wanted, int):
            assert choosing.log_run(made, "a", previous=earlier) == wanted
        else:
            assert sentence(choosing.log_run, made, "a", previous=earlier) == (400, wanted)


def test_options_of_logs():
    query = {"follow": ["true"], "tailLines": ["5"], "limitBytes": ["10"], "sinceSeconds": ["60"], "timestamps": ["1"]}
    options = choosing.log_options("x", query, now=1000.0)
    assert options == LogOptions(follow=True, since=940.0, tail=5, limit=10, timestamps=True)
    options = choosing.log_options("x", {"sinceTime": ["1970-01-01T00:01:00Z"], "stream": ["Stderr"]}, now=0.0)
    assert options == LogOptions(since=60.0, stream="Stderr")


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ({"tailLines": ["-1"]}, 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ({"limitBytes": ["0"]}, 422, "limitBytes: Invalid value: 0: must be greater than 0"),
        ({"sinceSeconds": ["0"]}, 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        (
            {"sinceSeconds": ["1"], "sinceTime": ["2026-11-17T07:00:00Z"]},
            422,
            "[]: Forbidden: at most one of `sinceTime` or",
        ),
        ({"stream": ["Both"]}, 422, 'stream: Unsupported value: "Both"'),
        ({"stream": ["Stdout"], "tailLines": ["1"]}, 422, "[]: Forbidden: `tailLines` and specific `stream` are"),
        ({"sinceTime": ["yesterday"]}, 400, "sinceTime"),
    ],
)
def test_options_that_are_refused(query, code, words):
    refused, said = sentence(choosing.log_options, "x", query, now=0.0)
    assert refused == code
    assert words in said


def test_what_a_command_asks_for():
    query = {"command": ["sh", "-c"], "stdin": ["true"], "stdout": ["true"], "stderr": ["true"], "tty": ["true"]}
    assert choosing.command_of(query, exec=True) == Command(("sh", "-c"), frozenset({STDIN, STDOUT}), True)
    assert choosing.command_of({"stdout": ["1"]}, exec=False) == Command((), frozenset({STDOUT}))
    assert sentence(choosing.command_of, {}, exec=False)[1] == "you must specify at least 1 of stdin, stdout, stderr"
    assert sentence(choosing.command_of, {"stdout": ["1"]}, exec=True)[0] == 400


def test_pods_in_which_nothing_can_run():
    done = pod("a")
    done["status"]["phase"] = "Succeeded"
    assert sentence(choosing.check_can_run, done, "exec into") == (
        400,
        "cannot exec into a container in a completed pod; current phase is Succeeded",
    )
    waiting = pod("a", nodeName="")
    assert sentence(choosing.check_can_run, waiting, "attach") == (400, "pod x does not have a host assigned")
