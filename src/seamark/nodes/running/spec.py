"""What a kubelet reads of a Pod beyond what other components do: commands, environment, volumes, probes, security."""

from __future__ import annotations

from typing import Any

import msgspec

from seamark.rules.objects.metadata import ObjectView, View
from seamark.rules.objects.pod import ContainerPort, Quantity, ResizePolicy, Resources

# --- environment -----------------------------------------------------------------------------------


class FieldRef(View, frozen=True):
    field_path: str = ""


class ResourceFieldRef(View, frozen=True):
    resource: str = ""
    container_name: str = ""
    divisor: Quantity = "0"


class KeyRef(View, frozen=True):
    """A key of a ConfigMap or Secret."""

    name: str = ""
    key: str = ""
    optional: bool = False


class ValueFrom(View, frozen=True):
    field_ref: FieldRef | None = None
    resource_field_ref: ResourceFieldRef | None = None
    config_map_key_ref: KeyRef | None = None
    secret_key_ref: KeyRef | None = None


class Variable(View, frozen=True):
    name: str = ""
    value: str = ""
    value_from: ValueFrom | None = None


class SourceRef(View, frozen=True):
    """A whole ConfigMap or Secret."""

    name: str = ""
    optional: bool = False


class Variables(View, frozen=True):
    """All keys of a ConfigMap or Secret as variables."""

    prefix: str = ""
    config_map_ref: SourceRef | None = None
    secret_ref: SourceRef | None = None


# --- actions and probes ----------------------------------------------------------------------------


class Command(View, frozen=True):
    command: tuple[str, ...] = ()


class Header(View, frozen=True):
    name: str = ""
    value: str = ""


class HttpGet(View, frozen=True):
    port: int | str = 0
    path: str = ""
    host: str = ""
    scheme: str = "HTTP"
    http_headers: tuple[Header, ...] = ()


class TcpSocket(View, frozen=True):
    port: int | str = 0
    host: str = ""


class Grpc(View, frozen=True):
    port: int = 0
    service: str | None = None


class Sleep(View, frozen=True):
    seconds: int = 0


class Action(View, frozen=True):
    """One of these: what a hook or a probe does."""

    exec: Command | None = None
    http_get: HttpGet | None = None
    tcp_socket: TcpSocket | None = None
    grpc: Grpc | None = None
    sleep: Sleep | None = None


class Probe(Action, frozen=True):
    initial_delay_seconds: int = 0
    period_seconds: int = 10
    timeout_seconds: int = 1
    success_threshold: int = 1
    failure_threshold: int = 3
    termination_grace_period_seconds: int | None = None


class Lifecycle(View, frozen=True):
    post_start: Action | None = None
    pre_stop: Action | None = None
    stop_signal: str = ""


# --- security --------------------------------------------------------------------------------------


class Setting(View, frozen=True):
    """A setting of the kernel (a sysctl)."""

    name: str = ""
    value: str = ""


class Security(View, frozen=True):
    """The ``securityContext`` of a container or a Pod; fields are None where nothing is said."""

    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    supplemental_groups: tuple[int, ...] = ()
    fs_group: int | None = None
    privileged: bool | None = None
    allow_privilege_escalation: bool | None = None
    read_only_root_filesystem: bool | None = None
    capabilities: Any = None
    se_linux_options: Any = None
    seccomp_profile: Any = None
    app_armor_profile: Any = None
    sysctls: tuple[Setting, ...] = ()


# --- containers ------------------------------------------------------------------------------------


class Mount(View, frozen=True):
    name: str = ""
    mount_path: str = ""
    sub_path: str = ""
    sub_path_expr: str = ""
    read_only: bool = False


class Container(View, frozen=True):
    name: str = ""
    image: str = ""
    image_pull_policy: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    ports: tuple[ContainerPort, ...] = ()
    env: tuple[Variable, ...] = ()
    env_from: tuple[Variables, ...] = ()
    resources: Resources = Resources()
    resize_policy: tuple[ResizePolicy, ...] = ()
    volume_mounts: tuple[Mount, ...] = ()
    restart_policy: str | None = None
    target_container_name: str = ""  # of an ephemeral container: the one whose processes it sees
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle = Lifecycle()
    security_context: Security = Security()
    termination_message_path: str = "/dev/termination-log"
    termination_message_policy: str = "File"
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False

    @property
    def sidecar(self) -> bool:
        """Whether it, as an init container, runs beside the others until the Pod ends."""
        return self.restart_policy == "Always"


class HostAlias(View, frozen=True):
    ip: str = ""
    hostnames: tuple[str, ...] = ()


class DnsOption(View, frozen=True):
    name: str = ""
    value: str | None = None


class DnsConfig(View, frozen=True):
    nameservers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[DnsOption, ...] = ()


class Spec(View, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[Container, ...] = ()
    restart_policy: str = "Always"
    termination_grace_period_seconds: int = 30
    active_deadline_seconds: int | None = None
    node_name: str = ""
    service_account_name: str = ""
    host_network: bool = False
    host_pid: bool = msgspec.field(name="hostPID", default=False)
    host_ipc: bool = msgspec.field(name="hostIPC", default=False)
    share_process_namespace: bool = False
    hostname: str = ""
    subdomain: str = ""
    set_hostname_as_fqdn: bool = msgspec.field(name="setHostnameAsFQDN", default=False)
    hostname_override: str = ""
    host_aliases: tuple[HostAlias, ...] = ()
    dns_policy: str = "ClusterFirst"
    dns_config: DnsConfig = DnsConfig()
    enable_service_links: bool = True
    security_context: Security = Security()
    volumes: tuple[dict[str, Any], ...] = ()


class PodToRun(ObjectView, frozen=True):
    """A Pod as a kubelet reads it once, when it was given to the kubelet's node."""

    spec: Spec = Spec()

    @property
    def host_name(self) -> str:
        """The host name in the Pod: as it asks, or the Pod's own, cut to what Linux allows."""
        return (self.spec.hostname_override or self.spec.hostname or self.metadata.name)[:63].rstrip("-.")
