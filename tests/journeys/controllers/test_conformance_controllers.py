"""The recorded behaviour of the real endpoint controllers, replayed against a whole Seamark over HTTPS."""

from __future__ import annotations

import uuid

import pytest
from replaying import LARGE, replay
from seamark_process import Start

import etcd_server


@pytest.mark.parametrize("store", ["sqlite", "etcd", "sqlite, controllers in a worker"])
def test_the_controllers_do_what_the_real_ones_were_recorded_to_do(
    start: Start, store: str, request: pytest.FixtureRequest
) -> None:
    arguments = ["--nodes", "0", "--dns-port", "0"]
    if store == "etcd":
        etcd: etcd_server.EtcdCluster = request.getfixturevalue("etcd")
        arguments += ["--store", f"etcd://{','.join(etcd.addresses)}/{uuid.uuid4().hex}"]
    elif "worker" in store:
        arguments += ["--workers", "2"]
    server = start(*arguments, verb="up")
    # The metrics of several processes have a label more, which the tool does not read; it knows by its markers as well.
    queues = ["--metrics", f"{server.url}/metrics"] if "worker" not in store else []
    if store == "sqlite":
        assert replay(server, "replay.py", "controllers", "--jobs", "64", *queues) >= 127
    else:  # the same controllers: one scenario of each sort is enough
        assert replay(server, "replay.py", "controllers", "--jobs", "64", *queues, *LARGE, only=("hand",)) >= 67
