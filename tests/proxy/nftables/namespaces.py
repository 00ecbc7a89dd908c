"""Runs a coroutine in a network namespace of its own, so that tests change no rules of the machine itself."""

import asyncio
import ctypes
import os
import threading

import pytest

_NEW_NETWORK = 0x40000000


def alone(test):
    """Run an async test in a new network namespace; skip it where this user cannot make one."""

    def run(*arguments, **named):
        problem, failure = [], []

        def work():
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.unshare(_NEW_NETWORK):
                problem.append(os.strerror(ctypes.get_errno()))
                return
            try:
                asyncio.run(test(*arguments, **named))
            except BaseException as error:
                failure.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        if problem:
            pytest.skip(f"network namespaces cannot be made here: {problem[0]}")
        if failure:
            raise failure[0]

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    run.__signature__ = __import__("inspect").signature(test)
    return run
