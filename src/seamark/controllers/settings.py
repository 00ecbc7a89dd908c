"""The settings of the controllers: discovery, what a cluster of our own has around Services, leader election."""

from typing import Annotated, Literal, Self, get_args

import msgspec

from seamark.access.leader import Timing
from seamark.controllers.housekeeping.loadbalancer_pool import LOOPBACK_POOL, check_pool
from seamark.kinds.values.metadata import dns_subdomain
from seamark.kinds.wellknown import ENDPOINTS_PER_SLICE
from seamark.settings import Section, parse_listen, setting

Name = Literal["endpoints", "endpointslices", "endpointslicemirroring", "probes", "why"]
ALL: tuple[Name, ...] = ("endpoints", "endpointslices", "endpointslicemirroring", "probes")


class ProbeSettings(Section, frozen=True):
    """Health checks of members that users wrote by hand."""

    concurrency: Annotated[int, setting("How many health checks run at once at most.", "--probe-concurrency N")] = 100
    commands: Annotated[
        bool,
        setting(
            "Run the commands of `exec` probes: users who may write EndpointSlices then run programs as this process.",
            "--probe-commands",
        ),
    ] = False

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ValueError(f"at least one check at once is needed, not {self.concurrency}")


class DiscoverySettings(Section, frozen=True):
    """The settings of the discovery controllers.

    With ``batch``, several changes of the Pods of one Service are gathered and written together, each within that many
    seconds if writing itself takes less than half of it; the first change is written at once.
    """

    controllers: Annotated[
        tuple[Name, ...],
        setting(
            "Which of the discovery controllers run; `why` writes Events about Services, see docs/why.md.",
            "--controllers NAME,…",
        ),
    ] = ALL
    workers: Annotated[int, setting("How many Services each controller handles at once.", "--concurrent N")] = 5
    max_endpoints_per_slice: Annotated[
        int, setting("How many endpoints one EndpointSlice holds at most, 1 to 1000.", "--max-endpoints-per-slice N")
    ] = ENDPOINTS_PER_SLICE
    batch: Annotated[
        float,
        setting("Seconds within which further changes of a Service's Pods are written, together.", "--batch SECONDS"),
    ] = 0.0
    status: Annotated[
        str,
        setting(
            "Where `seamark controllers` serves `/health`, `/ready` and `/metrics`; empty: nowhere.",
            "--status HOST:PORT",
        ),
    ] = ""
    probes: ProbeSettings = ProbeSettings()

    def __post_init__(self) -> None:
        if not self.controllers:
            raise ValueError(f"no controllers: name some of {', '.join(get_args(Name))}")
        if not 1 <= self.max_endpoints_per_slice <= 1000:
            raise ValueError(f"max_endpoints_per_slice is between 1 and 1000, not {self.max_endpoints_per_slice}")
        if self.workers < 1:
            raise ValueError(f"at least one worker is needed, not {self.workers}")
        if self.batch < 0:
            raise ValueError(f"batch is a number of seconds, not {self.batch}")
        if self.status:
            parse_listen(self.status)


class SurroundingsSettings(Section, frozen=True):
    """What a cluster of our own has around its Services."""

    namespace_contents: Annotated[
        bool,
        setting(
            "Give namespaces a `default` ServiceAccount (and see `root_certificates`); with `--profile plain` the "
            "default is false.",
            "--namespace-contents BOOL",
        ),
    ] = True
    root_certificates: Annotated[
        bool,
        setting("Give namespaces the ConfigMap `kube-root-ca.crt`; with `--profile plain` the default is false."),
    ] = True
    load_balancer_pool: Annotated[
        tuple[str, ...],
        setting(
            "Addresses for Services of type LoadBalancer: CIDRs and ranges `FIRST-LAST`; without any, which is the "
            "default without nodes, such Services stay pending. With `--no-node-ports`, and on systems other than "
            "Linux, the default is `203.0.113.0/24,2001:db8:ffff::/112`, where nothing answers.",
            "--load-balancer-pool CIDR,…|none",
        ),
    ] = LOOPBACK_POOL
    storage_class: Annotated[
        str,
        setting(
            "The default StorageClass, whose claims get simulated volumes; empty: there is none, which is the default "
            "without nodes and with `--profile plain`.",
            "--storage-class NAME",
        ),
    ] = "standard"
    keep_events_seconds: Annotated[float, setting("Seconds an Event stays after it last changed.")] = 3600.0

    def __post_init__(self) -> None:
        check_pool(self.load_balancer_pool)
        if self.storage_class and (wrong := dns_subdomain(self.storage_class)):
            raise ValueError(f"storage_class is the name of a StorageClass, not {self.storage_class!r}: {wrong[0]}")
        if self.keep_events_seconds <= 0:
            raise ValueError(f"keep_events_seconds is a time in seconds, not {self.keep_events_seconds}")

    def bare(self) -> Self:
        """For an API server alone, which has no cloud around it."""
        return msgspec.structs.replace(self, load_balancer_pool=(), storage_class="")


class ElectionSettings(Section, frozen=True):
    """Which Lease the processes compete for, and how long they wait for each other."""

    enabled: Annotated[bool, setting("Elect a leader; if false, this must be the only process.", "--leader-elect")] = (
        True
    )
    namespace: Annotated[str, setting("The namespace of the Lease.", "--leader-elect-namespace NAME")] = "kube-system"
    name: Annotated[
        str,
        setting(
            "The name of the Lease; API servers that share a store use `seamark-controllers` unless told otherwise.",
            "--leader-elect-name NAME",
        ),
    ] = "seamark-discovery"
    identity: Annotated[
        str,
        setting("The name of this process in the Lease; empty: a unique one.", "--leader-elect-identity TEXT"),
    ] = ""
    lease_duration: Annotated[
        int,
        setting(
            "Seconds that others wait for a silent leader before they take over.",
            "--leader-elect-lease-duration SECONDS",
        ),
    ] = 15
    renew_deadline: Annotated[
        float,
        setting(
            "Seconds without a renewal after which a leader stops working.", "--leader-elect-renew-deadline SECONDS"
        ),
    ] = 10.0
    retry_period: Annotated[
        float,
        setting("Seconds between two attempts to take or renew the Lease.", "--leader-elect-retry-period SECONDS"),
    ] = 2.0

    def __post_init__(self) -> None:
        _ = self.timing  # raises if the three times do not fit together

    @property
    def timing(self) -> Timing:
        return Timing(self.lease_duration, self.renew_deadline, self.retry_period)
