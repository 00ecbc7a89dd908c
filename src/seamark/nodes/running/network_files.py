"""The files that tell a Pod about its network: ``resolv.conf`` and ``hosts``, as a kubelet writes them.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from seamark.nodes.running.spec import PodToRun

MOST_NAMESERVERS, MOST_SEARCHES = 3, 32  # what a resolver reads
CLUSTER_OPTIONS = ("ndots:5",)


class Resolver(msgspec.Struct, frozen=True):
    """What a ``resolv.conf`` says."""

    nameservers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def text(self) -> str:
        lines = [f"search {' '.join(self.searches)}"] if self.searches else []
        lines += [f"nameserver {each}" for each in self.nameservers]
        if self.options:
            lines.append(f"options {' '.join(self.options)}")
        return "".join(line + "\n" for line in lines)


def read_resolver(text: str) -> Resolver:
    """A ``resolv.conf`` as this machine has it."""
    nameservers: list[str] = []
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    for line in text.splitlines():
        word, *rest = line.split() or [""]
        if word == "nameserver" and rest:
            nameservers.append(rest[0])
        elif word in ("search", "domain"):
            searches = tuple(rest)
        elif word == "options":
            options = tuple(rest)
    return Resolver(tuple(nameservers), searches, options)


def resolver(pod: PodToRun, *, cluster: Sequence[str], domain: str, host: Resolver) -> Resolver:
    """The Pod's own, by its ``dnsPolicy``, then what its ``dnsConfig`` adds."""
    policy, namespace = pod.spec.dns_policy, pod.metadata.namespace
    if policy == "None":
        base = Resolver()
    elif policy == "Default" or (policy == "ClusterFirst" and pod.spec.host_network) or not cluster:
        base = host
    else:
        searches = (f"{namespace}.svc.{domain}", f"svc.{domain}", domain, *host.searches)
        base = Resolver(tuple(cluster), searches, CLUSTER_OPTIONS)
    asked = pod.spec.dns_config
    options = {each.partition(":")[0]: each for each in base.options}
    for option in asked.options:
        options[option.name] = option.name if option.value is None else f"{option.name}:{option.value}"
    return Resolver(
        tuple(dict.fromkeys((*base.nameservers, *asked.nameservers)))[:MOST_NAMESERVERS],
        tuple(dict.fromkeys((*base.searches, *asked.searches)))[:MOST_SEARCHES],
        tuple(options.values()),
    )


def hosts(pod: PodToRun, addresses: Sequence[str], *, domain: str) -> str:
    """``/etc/hosts`` of a Pod with a network of its own."""
    name = pod.host_name
    lines = [
        "# Kubernetes-managed hosts file.",
        "127.0.0.1\tlocalhost",
        "::1\tlocalhost ip6-localhost ip6-loopback",
        "fe00::0\tip6-localnet",
        "fe00::0\tip6-mcastprefix",
        "fe00::1\tip6-allnodes",
        "fe00::2\tip6-allrouters",
    ]
    full = f"{name}.{pod.spec.subdomain}.{pod.metadata.namespace}.svc.{domain}\t" if pod.spec.subdomain else ""
    lines += [f"{address}\t{full}{name}" for address in addresses]
    return "\n".join(lines) + "\n" + aliases(pod)


def hosts_of_node(pod: PodToRun, text: str) -> str:
    """``/etc/hosts`` of a Pod that shares the network of its node, from that of the node."""
    return f"# Kubernetes-managed hosts file (host network).\n{text}{aliases(pod)}"


def aliases(pod: PodToRun) -> str:
    """The entries that the Pod itself adds."""
    if not pod.spec.host_aliases:
        return ""
    lines = [f"{each.ip}\t" + "\t".join(each.hostnames) for each in pod.spec.host_aliases]
    return "\n# Entries added by HostAliases.\n" + "\n".join(lines) + "\n"
