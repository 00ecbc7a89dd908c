"""The settings of the API server, of ServiceAccounts' tokens, and the addresses and node ports that Services get."""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated
from urllib.parse import urlsplit

from seamark.settings import Section, setting

SMALLEST_RANGE = 8  # addresses
SHORTEST_IPV6_PREFIX = 64
WATCH_BYTES = 512 * 1024 * 1024
SMALLEST_WATCH_BYTES = 16 * 1024 * 1024
MAX_WORKERS = 64
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class ApiSettings(Section, frozen=True):
    """Where the API server listens, and which users it knows."""

    host: Annotated[str, setting("The address the API server listens on.", "--api-host HOST")] = "127.0.0.1"
    port: Annotated[int, setting("The port the API server listens on; 0 takes a free one.", "--api-port PORT")] = 6443
    workers: Annotated[
        int,
        setting(
            "Processes that serve the API at this port together, each with its own copy of the state, to use as many "
            "cores. One of them orders all writes, another has the controllers.",
            "--workers N",
        ),
    ] = 1
    plain_http: Annotated[bool, setting("No TLS; allowed on loopback only.", "--plain-http")] = False
    token_file: Annotated[str, setting('More users: lines of `token,user,uid,"group,…"`.', "--token-file FILE")] = ""
    tls_certificate: Annotated[
        str,
        setting(
            "The certificate to serve with, and those of its issuers (PEM); empty: one of our own authority.",
            "--tls-cert-file FILE",
        ),
    ] = ""
    tls_key: Annotated[str, setting("The key of that certificate (PEM).", "--tls-private-key-file FILE")] = ""
    client_authority: Annotated[
        str,
        setting(
            "Authorities whose client certificates are believed (PEM), beside our own: CN is the user, O a group.",
            "--client-ca-file FILE",
        ),
    ] = ""
    disabled_plugins: Annotated[
        tuple[str, ...],
        setting("Steps of admission to leave out, by their names in Kubernetes.", "--disable-admission-plugins NAME"),
    ] = ()
    advertise: Annotated[
        str,
        setting("The address in the Endpoints of `default/kubernetes`; empty: the one listened on, or the machine's."),
    ] = ""
    max_in_flight: Annotated[
        int,
        setting("Requests in progress at once; further ones wait, up to four times as many of each user and kind."),
    ] = 128
    watch_bytes: Annotated[
        int,
        setting(
            "Memory for watches in all: a quarter for recent events, the rest for clients that do not read; beyond "
            "that the slowest are cut off."
        ),
    ] = WATCH_BYTES
    max_connections: Annotated[
        int,
        setting(
            "Connections at once, at most 3/4 of the files that the process may open (`ulimit -n`), and 48 fewer than "
            "these; beyond that, the one that was idle the longest is closed for a new one."
        ),
    ] = 10_000

    audit_log: Annotated[
        str, setting("Where to log who did what, in Kubernetes' audit format; empty: nowhere.", "--audit-log-path FILE")
    ] = ""
    audit_policy: Annotated[
        str,
        setting(
            "How much to log of which requests: a Policy of audit.k8s.io/v1; empty: all requests, without contents.",
            "--audit-policy-file FILE",
        ),
    ] = ""

    def __post_init__(self) -> None:
        if self.audit_policy and not self.audit_log:
            raise ValueError("audit_policy says what is logged, but audit_log does not say where")
        if bool(self.tls_certificate) != bool(self.tls_key):
            raise ValueError("tls_certificate and tls_key belong together: give both, or neither")
        if not 0 <= self.port <= 65535:
            raise ValueError(f"port {self.port}: a port is between 0 and 65535")
        if self.watch_bytes < SMALLEST_WATCH_BYTES:
            raise ValueError(f"watch_bytes {self.watch_bytes}: at least {SMALLEST_WATCH_BYTES} are needed")
        if self.plain_http and self.host not in LOOPBACK:
            raise ValueError("plain_http is allowed on loopback only; leave it out, or listen on 127.0.0.1")
        if not 1 <= self.workers <= MAX_WORKERS:
            raise ValueError(f"workers {self.workers}: must be between 1 and {MAX_WORKERS}")
        if self.max_connections < 1:
            raise ValueError(f"max_connections {self.max_connections}: must be at least 1")


class TokenSettings(Section, frozen=True):
    """The tokens of ServiceAccounts: who issues them, for whom, and the keys that sign them."""

    issuers: Annotated[
        tuple[str, ...],
        setting(
            "The issuer of tokens; tokens of further ones are believed too, so that an issuer can be replaced. By "
            "default it is `https://kubernetes.default.svc.` and the cluster domain.",
            "--service-account-issuer URL",
        ),
    ] = ("https://kubernetes.default.svc.cluster.local",)
    audiences: Annotated[
        tuple[str, ...],
        setting("The names of this API in tokens; by default those of the issuers.", "--api-audiences NAME"),
    ] = ("https://kubernetes.default.svc.cluster.local",)
    signing_key: Annotated[
        str,
        setting(
            "The private key that signs tokens (PEM, RSA or ECDSA); empty: `pki/sa.key` in the data directory, made at "
            "the first start.",
            "--service-account-signing-key-file FILE",
        ),
    ] = ""
    keys: Annotated[
        tuple[str, ...],
        setting(
            "Files with further keys that tokens are verified with, public or private; empty: `pki/sa.pub` in the data "
            "directory.",
            "--service-account-key-file FILE",
        ),
    ] = ()
    keys_address: Annotated[
        str,
        setting(
            "Where others find the public keys; empty: `/openid/v1/jwks` of this server.",
            "--service-account-jwks-uri URL",
        ),
    ] = ""
    longest_seconds: Annotated[
        int, setting("The longest time that a new token is good for; 0: as long as it is asked for.")
    ] = 0
    extend: Annotated[
        bool,
        setting(
            "Make the tokens of Pods good for a year, as Kubernetes does for clients that never read the file again.",
            "--service-account-extend-token-expiration BOOL",
        ),
    ] = True

    def __post_init__(self) -> None:
        if not self.issuers:
            raise ValueError("issuers: one is needed, for example https://kubernetes.default.svc.cluster.local")
        for issuer in self.issuers:
            if ":" in issuer and not urlsplit(issuer).scheme:
                raise ValueError(f"issuers {issuer}: not a URL, although it contains a colon")
        if self.keys and not self.signing_key:
            raise ValueError("keys: name the signing_key too, or no server can sign a token that these keys verify")
        if self.longest_seconds and not 3600 <= self.longest_seconds <= 1 << 32:
            raise ValueError(f"longest_seconds {self.longest_seconds}: at least an hour (3600), or 0 for no limit")


DEFAULT_TOKENS = TokenSettings()


def _port_range(words: Sequence[str]) -> tuple[int, int]:
    low, _, high = words[-1].partition("-")
    if not low.isdigit() or not high.isdigit():
        raise ValueError("expected LOW-HIGH, for example 30000-32767")
    return int(low), int(high)


class ServiceNetwork(Section, frozen=True):
    """The addresses and node ports that Services get."""

    ranges: Annotated[
        tuple[str, ...],
        setting(
            "Addresses for Services, one range per IP family; the first one's family is the default.",
            "--service-range CIDR[,CIDR]",
        ),
    ] = ("10.96.0.0/16", "fd00:96::/112")
    node_ports: Annotated[
        tuple[int, int], setting("The first and the last node port.", "--node-port-range LOW-HIGH", _port_range)
    ] = (30000, 32767)

    def __post_init__(self) -> None:
        if not 1 <= len(self.ranges) <= 2:
            raise ValueError(f"service ranges: one, or one of each IP family, is needed, not {len(self.ranges)}")
        networks = [_network(text) for text in self.ranges]
        for network in networks:
            if network.version == 6 and network.prefixlen < SHORTEST_IPV6_PREFIX:
                raise ValueError(
                    f"service range {network}: too large, an IPv6 prefix must have {SHORTEST_IPV6_PREFIX} bits or more"
                )
            if network.num_addresses < SMALLEST_RANGE:
                raise ValueError(f"service range {network}: too small, at least {SMALLEST_RANGE} addresses are needed")
        if len({network.version for network in networks}) < len(networks):
            raise ValueError(f"service range {networks[1]}: there is already a range of IPv{networks[1].version}")
        first, last = self.node_ports
        if not 1 <= first <= last <= 65535:
            raise ValueError(f"node ports {first}-{last}: must lie between 1 and 65535, the lower number first")


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise ValueError(f"service range {text}: {error}") from None
