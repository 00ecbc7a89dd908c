"""Namespace: its labels, and whether it is being deleted."""

from seamark.rules.objects.metadata import ObjectView, View


class NamespaceStatus(View, frozen=True):
    phase: str = ""


class Namespace(ObjectView, frozen=True):
    status: NamespaceStatus = NamespaceStatus()
