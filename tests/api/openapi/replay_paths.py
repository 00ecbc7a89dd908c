"""The replay's own way to look into documents (``resources[name=pods].verbs``), so that tests mean what it means."""

from __future__ import annotations

from conformance_files import tool

_replay = tool("replay_api")
lookup = _replay.lookup
remove = _replay.remove
