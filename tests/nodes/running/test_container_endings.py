"""How containers are asked to end, what is said of those that ended, and when a start that failed is tried again."""

import errno
import os
import signal

import pytest

from seamark.nodes.running import endings
from seamark.nodes.running.attempts import Attempts
from seamark.nodes.running.machine.messages import Start
from seamark.nodes.running.preparing.starting import MESSAGE
from seamark.nodes.running.spec import Container
from seamark.nodes.running.streaming.container_logs import LogFile
from virtual_time import HastyClock


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("", signal.SIGTERM),
        ("SIGUSR1", signal.SIGUSR1),
        ("usr1", signal.SIGUSR1),
        ("9", signal.SIGKILL),
        ("SIGRTMIN+3", signal.SIGRTMIN + 3),
        ("SIGUNHEARDOF", signal.SIGTERM),
    ],
)
def test_the_signal_that_asks_a_container_to_end(name, number):
    assert endings.stop_signal(name) == number


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOENT, 'exec: "serve": executable file not found in $PATH'),
        (errno.EACCES, 'exec: "serve": Permission denied'),
    ],
)
def test_why_a_program_could_not_be_started(number, says):
    start = Start("p", ("serve",), {})
    assert endings.start_error(start, OSError(number, os.strerror(number))) == says


@pytest.mark.parametrize(
    ("left", "failed", "policy", "says"),
    [
        ("out of luck", True, "File", "out of luck"),
        ("out of luck", True, "FallbackToLogsOnError", "out of luck"),
        ("", True, "FallbackToLogsOnError", "the last line\n"),
        ("", False, "FallbackToLogsOnError", ""),
        ("", True, "File", ""),
    ],
)
def test_the_message_of_a_container_that_ended(tmp_path, left, failed, policy, says):
    log = LogFile(tmp_path / "logs" / "main" / "0.log")
    log.write("stdout", [(b"the last line", True)])
    if left:
        (tmp_path / "containers" / "main").mkdir(parents=True)
        (tmp_path / "containers" / "main" / MESSAGE).write_text(left)
    container = Container("main", termination_message_policy=policy)
    assert endings.message(container, tmp_path, log, failed=failed) == says
    log.close()


async def test_a_start_that_failed_is_tried_again_later_each_time():
    clock = HastyClock()
    attempts = Attempts(clock)
    assert attempts.due("main") <= clock.time()
    delays = []
    for _ in range(11):
        attempts.put_off("main", 1.0)
        assert attempts.failed("main") == clock.time()
        delays.append(attempts.due("main") - clock.time())
    assert delays == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    attempts.forget("main")
    assert attempts.due("main") <= clock.time()
