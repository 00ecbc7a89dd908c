"""The recorded behaviour of a real Kubernetes API server, replayed against Seamark on either store."""

from __future__ import annotations

import uuid

from replaying import replay
from seamark_process import Start

import etcd_server

# What a store, or a second process before it, can get wrong: versions, conflicts, order, pages and watches, and what
# servers follow in it: kinds, rights and allocations.  The others are about objects that are judged before that.
FOLLOWED = ("cr-objects", "crd-definitions", "rbac", "service-defaults", "tokens")
STORED = ("apply", "crud", "delete", "dryrun", "errors", "events", "lists", "namespaces", "patch", "pods")
STORED += ("selectors", "status", "tables", "watch", "watchlist", "workloads")
FULL = ("admission", "kinds-storage")  # with FOLLOWED, all that have cases for the full profile alone


# A cluster without nodes, as the recordings were made.  Every case is played on SQLite, in one process or in two.
def test_every_recorded_exchange_is_repeated(start: Start) -> None:
    server = start("--dns-port", "0", "--nodes", "0", "--profile", "plain", verb="up")
    assert replay(server, "replay_api.py", "api", "--jobs", "8", "--profile", "plain") >= 600


def test_two_processes_repeat_them_as_one(start: Start) -> None:
    server = start("--dns-port", "0", "--nodes", "0", "--workers", "2", verb="up")
    files = (*FOLLOWED, *STORED, *FULL)
    assert replay(server, "replay_api.py", "api", "--jobs", "8", "--profile", "full", only=files) >= 449


# The set-up with more objects comes first: in a new etcd the plain one reaches version 80 while a Service with port 80
# is compared, and the tool takes such a version for the port.
def test_on_etcd_what_a_store_has_a_part_in(start: Start, etcd: etcd_server.EtcdCluster) -> None:
    for profile, files, cases in (("full", FOLLOWED, 236), ("plain", STORED, 218)):
        store = f"etcd://{','.join(etcd.addresses)}/{uuid.uuid4().hex}"
        setup = ("--dns-port", "0", "--nodes", "0", "--profile", profile, "--store", store)
        server = start(*setup, name=profile, verb="up")
        assert replay(server, "replay_api.py", "api", "--jobs", "8", "--profile", profile, only=files) >= cases
        server.stop()
