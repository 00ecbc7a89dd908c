"""How much of a core the search for stale flows takes; that it finds them is tested with the engine."""

import socket
import time

from route_worlds import AROUND

from seamark.proxy.nftables.conntrack import _end


class SlowKernel:
    """A kernel that has no flows and lets the search wait, as a machine does whose cores are busy."""

    def dump(self, subsystem, query):
        time.sleep(0.2)
        return iter(())


def test_a_search_that_had_to_wait_is_not_followed_by_a_longer_rest():
    doubtful = {(socket.AF_INET, "10.96.0.1", 53): frozenset({("10.244.1.1", 53)})}
    assert _end(SlowKernel(), doubtful, AROUND) < 0.2
