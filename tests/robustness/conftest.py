"""Robustness: random clients against Seamark while things fail, and what their histories must be.

- ``history``: what clients did and saw, in the order in which it began and ended for them
- ``linear``: whether an order of the operations on one key explains every answer (pure)
- ``checks``: every rule that a history must keep (pure)
- ``shrink``: a history that breaks a rule, made as short as it can be (pure)
- ``clients``: random clients and watchers that write down what becomes of their requests
- ``runs``: one run of clients, watchers and faults at a site, and its verdict
- ``in_process``: a site: API servers in this process over one store, following it late
- ``planted``: bugs put in on purpose, one of each kind, that the short runs must find
- ``processes``: a site: API servers as processes, over a file or etcd
- ``crowd``: writers, watchers and DNS queries by the hundred, for outages of etcd under load
- ``faults``: kills, stops, full disks, and a relay that drops, holds or delays what servers and etcd say
"""

from __future__ import annotations

import pytest

from seamark.access import remote


@pytest.fixture(autouse=True)
def _short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let lists over HTTP come in pages, as long ones do, so that objects change between two of them."""
    monkeypatch.setattr(remote, "PAGE", 2)
