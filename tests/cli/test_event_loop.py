"""What commands say about failures in the event loop itself."""

import asyncio
import logging

import pytest

from seamark.cli import event_loop


def test_connections_that_the_command_has_closed_are_nothing_to_tell(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        closed = RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed")
        loop.call_exception_handler({"message": "Fatal error on SSL protocol", "exception": closed})
        loop.call_exception_handler({"message": "something else", "exception": RuntimeError("odd")})

    with caplog.at_level(logging.ERROR, logger="asyncio"):
        event_loop.run(work())
    assert [record.getMessage() for record in caplog.records] == ["something else"]
