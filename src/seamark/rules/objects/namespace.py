"""Namespace: its labels, and whether it is being deleted."""

from __future__ import annotations

from seamark.rules.objects.metadata import Metadata, View


class NamespaceStatus(View, frozen=True):
    phase: str = ""


class Namespace(View, frozen=True):
    metadata: Metadata
    status: NamespaceStatus = NamespaceStatus()
