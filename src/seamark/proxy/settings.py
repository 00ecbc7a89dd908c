"""The settings of the service proxy.  Flags have kube-proxy's names where it has the same setting."""

from typing import Annotated, Literal

from seamark.rules.routing.surroundings import PRIMARY, within
from seamark.settings import Section, parse_listen, setting


class ProxySettings(Section, frozen=True):
    """How `seamark proxy` serves a node."""

    node_name: Annotated[str, setting("The Node this runs on; empty: the host name.", "--node-name NAME")] = ""
    mode: Annotated[
        Literal["nftables", "userspace"],
        setting("By the kernel (needs CAP_NET_ADMIN), or by forwarding in this process.", "--mode MODE"),
    ] = "nftables"
    cluster_cidrs: Annotated[
        tuple[str, ...],
        setting(
            "The ranges of the Pods' addresses, so that Pods can be told from other clients.", "--cluster-cidr CIDR,…"
        ),
    ] = ()
    detect_local_mode: Annotated[
        Literal["ClusterCIDR", "NodeCIDR"],
        setting("How Pods are told: by `--cluster-cidr`, or by the Node's `podCIDRs`.", "--detect-local-mode MODE"),
    ] = "ClusterCIDR"
    node_port_addresses: Annotated[
        tuple[str, ...],
        setting(
            "On which addresses of the node node ports answer: ranges, or `primary` for those in its status.",
            "--nodeport-addresses CIDR,…",
        ),
    ] = (PRIMARY,)
    masquerade_all: Annotated[
        bool, setting("Let backends see the node instead of any client of a cluster IP.", "--masquerade-all")
    ] = False
    masquerade_bit: Annotated[
        int,
        setting(
            "Which bit of a packet's mark says that it is to be masqueraded, 0 to 31.", "--iptables-masquerade-bit N"
        ),
    ] = 14
    healthz: Annotated[
        str,
        setting("Where `/healthz` and `/livez` are served; empty: nowhere.", "--healthz-bind-address HOST:PORT"),
    ] = "0.0.0.0:10256"
    metrics: Annotated[
        str, setting("Where `/metrics` are served; empty: nowhere.", "--metrics-bind-address HOST:PORT")
    ] = "127.0.0.1:10249"
    sync_period: Annotated[
        float,
        setting(
            "After how many seconds to look whether another program has changed our rules.", "--sync-period SECONDS"
        ),
    ] = 30.0

    def __post_init__(self) -> None:
        for each in (self.healthz, self.metrics):
            if each:
                parse_listen(each)
        for name, ranges in (("cluster_cidrs", self.cluster_cidrs), ("node_port_addresses", self.node_port_addresses)):
            for text in ranges:
                if not (text == PRIMARY and name == "node_port_addresses") and not _is_range(text):
                    raise ValueError(f"{name} {text}: not a range of addresses, such as 10.244.0.0/16")
        if not 0 <= self.masquerade_bit <= 31:
            raise ValueError(f"masquerade_bit is between 0 and 31, not {self.masquerade_bit}")
        if self.sync_period <= 0:
            raise ValueError(f"sync_period is a number of seconds, not {self.sync_period}")


def _is_range(text: str) -> bool:
    return within(text.partition("/")[0], (text,))
