"""The API server of one process, as the settings say: the main process has one, and each worker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from seamark.api.admission import PLAIN, PLUGINS, without
from seamark.api.aggregation.front_proxy import FrontProxy
from seamark.api.authentication import KeptCertificate
from seamark.api.certificates import Authority
from seamark.api.http.documents import Readiness, Report
from seamark.api.server import ApiServer
from seamark.api.settings import SMALLEST_WATCH_BYTES, ApiSettings
from seamark.config import Config
from seamark.daemon.requirements import audit_log, fixed_tokens, token_keys
from seamark.metrics import Registry
from seamark.runtime.supervisor import Supervisor
from seamark.store.protocol import Store


def api_server(
    config: Config,
    store: Store,
    authority: Authority,
    front_proxy: FrontProxy,
    *,
    metrics: Registry,
    readiness: Readiness,
    report: Callable[[], Awaitable[Report]] | None,
    supervisor: Supervisor | None = None,
) -> ApiServer:
    """``report`` asks all processes that serve together; without, this process is alone, whatever the settings say."""
    settings = config.api if report is None else share(config.api)
    return ApiServer(
        store,
        rbac=config.profile == "full",
        keys=token_keys(authority, config.tokens),
        token_settings=config.tokens,
        plugins=without(PLUGINS if config.profile == "full" else PLAIN, settings.disabled_plugins),
        network=config.network,
        tokens=fixed_tokens(authority, settings.token_file),
        admin_certificate=KeptCertificate(authority.admin_certificate_path),
        metrics=metrics,
        max_in_flight=settings.max_in_flight,
        watch_bytes=settings.watch_bytes,
        readiness=readiness,
        max_connections=settings.max_connections,
        audit=audit_log(settings, metrics),
        front_proxy=front_proxy,
        report=report,
        supervisor=supervisor,
    )


def share(settings: ApiSettings) -> ApiSettings:
    """One process's part of what all may use together; connections are spread evenly, so all parts are equal."""
    workers = settings.workers
    return msgspec.structs.replace(
        settings,
        max_in_flight=-(-settings.max_in_flight // workers),
        watch_bytes=max(SMALLEST_WATCH_BYTES, settings.watch_bytes // workers),
        max_connections=-(-settings.max_connections // workers),
    )
