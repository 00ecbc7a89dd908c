"""Views of the claims of devices, and of the templates from which Pods have them made."""

from typing import Any

import msgspec

from seamark.rules.objects.metadata import ObjectView, View


class Consumer(View, frozen=True):
    """Who may use a claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceClaimStatus(View, frozen=True):
    allocation: dict[str, Any] | None = None
    reserved_for: tuple[Consumer, ...] = ()


class DeviceClaim(ObjectView, frozen=True):
    """A ResourceClaim."""

    status: DeviceClaimStatus = DeviceClaimStatus()


class Described(View, frozen=True):
    """What claims that are made from a template have."""

    metadata: dict[str, Any] = msgspec.field(default_factory=dict)
    spec: dict[str, Any] = msgspec.field(default_factory=dict)


class DeviceClaimTemplate(ObjectView, frozen=True):
    """A ResourceClaimTemplate."""

    spec: Described = Described()
