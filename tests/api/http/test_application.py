"""The whole application: limits, compression, metrics, odd methods and paths."""

import asyncio
import gzip
import json
import threading

import pytest
from served import ADMIN, OTHER, served

from seamark.api.http.issuer import keys_beside
from seamark.api.http.url import MOST_PARAMETERS
from seamark.api.http.wire.incoming import MAX_BODY
from seamark.api.http.wire.messages import Request, Response, Streaming
from seamark.api.openapi.documents import OpenApi
from seamark.haste import LARGE_YAML
from seamark.kinds.language import yaml_text
from seamark.store.protocol import Unavailable
from turns import turns

BASE = "/api/v1/namespaces/default/configmaps"
AS_MASTER = {"impersonate-group": "system:masters"}


async def test_more_than_can_be_done_at_once_takes_turns_by_user(monkeypatch):
    monkeypatch.setattr("seamark.api.http.fairness.TURN", 3600.0)  # only seats are short, however slow the machine is
    async with served(max_in_flight=3) as api:
        done: list[str] = []

        async def create(name: str, **more: str) -> int:
            status = (await api.ask("POST", BASE, {"metadata": {"name": name}}, **more)).status
            done.append(name)
            return status

        # Three under way, twelve in the queue of this user: one more is too many.
        storm = [asyncio.ensure_future(create(f"c{number}")) for number in range(15)]
        await asyncio.sleep(0)
        assert api.api.application.in_flight == 3
        answer = await api.ask("POST", BASE, {"metadata": {"name": "more"}})
        assert (answer.status, answer.json["reason"]) == (429, "TooManyRequests")
        assert answer.header("Retry-After") == "1"
        assert answer.json["details"]["retryAfterSeconds"] == 1
        # Another user waits for one of those in the queue, not for all; reads and health need no seat.
        other = asyncio.ensure_future(create("other", headers={"impersonate-user": "ann", **AS_MASTER}))
        assert (await api.ask("GET", BASE)).status == 200
        assert (await api.ask("GET", "/readyz")).status == 200
        assert isinstance(api.begin("GET", f"{BASE}?watch=1"), Streaming)
        assert set(await asyncio.gather(other, *storm)) == {201}
        assert done.index("other") < done.index("c14")
        assert api.api.application.in_flight == 0


async def test_watches_are_not_in_flight(api):
    for _ in range(10):
        await api.watch(f"{BASE}?watch=1")
    assert api.api.application.in_flight == 0


async def test_large_answers_are_compressed_for_those_who_can(api):
    for number in range(3):
        await api.post(BASE, {"metadata": {"name": f"c{number}"}, "data": {"k": "x" * 50_000}})
    plain = await api.ask("GET", BASE)
    packed = await api.ask("GET", BASE, headers={"accept-encoding": "deflate, gzip"})
    assert plain.header("Content-Encoding") is None
    assert packed.header("Content-Encoding") == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert (await api.ask("GET", f"{BASE}/c0", headers={"accept-encoding": "gzip"})).header("Content-Encoding") is None


async def test_a_long_list_counts_until_it_is_sent_and_waits_while_others_fill_the_room(api, monkeypatch):
    monkeypatch.setattr("seamark.api.http.fairness.ROOM", 2_000_000)
    for number in range(4):
        await api.post(BASE, {"metadata": {"name": f"c{number}"}, "data": {"k": "x" * 300_000}})
    queue = api.api.application._queue

    async def listed():
        found = api.begin("GET", BASE)
        return found if isinstance(found, Response) else await found

    first = await listed()
    assert 1_200_000 < queue.room.used == first.load.size < 1_300_000
    assert (await api.ask("GET", BASE, query="limit=2")).status == 200
    assert queue.room.used == first.load.size, "a list of two is not long"
    assert f"seamark_api_list_bytes {first.load.size}".encode() in (await api.ask("GET", "/metrics")).body
    second = asyncio.ensure_future(listed())
    await turns(5)
    assert queue.waiting == 1
    assert (await api.ask("GET", f"{BASE}/c1")).status == 200
    first.load.release()
    assert (await second).body == first.body


@pytest.mark.parametrize("path", [BASE, "/version", "/api", "/nope", "/apis/apps/v1/deployments", "/livez"])
async def test_queries_with_very_many_parameters_are_refused(api, path):
    for query in ("&" * MOST_PARAMETERS, "pretty=1" + "&x" * MOST_PARAMETERS, "watch=1" + "&x" * MOST_PARAMETERS):
        for token in (ADMIN, OTHER, None):
            # Documents have no use for a query, and do not look at it.
            assert (await api.ask("GET", path, query=query, token=token)).status in (200, 400, 403)
        if path == BASE:
            assert (await api.ask("POST", path, {"metadata": {"name": "a"}}, query=query)).status == 400


async def test_indented_for_people(api):
    for more in ({"query": "pretty=true"}, {"headers": {"user-agent": "curl/8"}}):
        answer = await api.ask("GET", "/api/v1/namespaces/default", **more)
        assert answer.body.startswith(b'{\n  "kind": "Namespace",\n')
    answer = await api.ask("GET", "/api/v1/namespaces/none", query="pretty=1")
    assert (answer.status, answer.body[:4]) == (404, b"{\n  ")
    for query in ("pretty=0", "pretty=x", "notpretty=true"):
        assert b"\n  " not in (await api.ask("GET", "/api/v1/namespaces/default", query=query)).body


async def test_compact_json_ends_in_a_newline_and_indented_json_does_not(api):
    for path in ("/api/v1/namespaces/default", "/api/v1/namespaces", "/api/v1/namespaces/none", "/api/v1", "/apis"):
        assert (await api.ask("GET", path)).body.endswith(b"}\n"), path
        assert (await api.ask("GET", path, query="pretty=true")).body.endswith(b"}"), path
    # Kubernetes writes this document itself, always indented.
    assert (await api.ask("GET", "/version")).body.startswith(b'{\n  "major"')


@pytest.mark.parametrize("path", ["/openapi", "/openapi/", "/apis/nope"])
async def test_paths_that_lead_to_no_document_are_refused_in_plain_text(api, path):
    answer = await api.ask("GET", path)
    assert (answer.status, answer.type, answer.body) == (404, "text/plain; charset=utf-8", b"404 page not found\n")


async def test_metrics_tell_what_was_done(api):
    await api.post(BASE, {"metadata": {"name": "c"}})
    await api.ask("GET", f"{BASE}/missing")
    await api.watch(f"{BASE}?watch=1")
    text = (await api.ask("GET", "/metrics")).body.decode()
    for line in (
        'seamark_api_requests_total{verb="create",resource="configmaps",code="201"} 1',
        'seamark_api_requests_total{verb="get",resource="configmaps",code="404"} 1',
        'seamark_api_requests_total{verb="watch",resource="configmaps",code="200"} 1',
        'seamark_api_request_seconds_count{verb="create",resource="configmaps"} 1',
        "seamark_api_watches 1",
        f"seamark_store_revision {api.api.cache.revision}",
        'seamark_store_commits_total{result="committed"}',
        "seamark_store_commit_seconds_count",
        "seamark_store_batch_changes_count",
        "seamark_api_requests_in_flight 0",
    ):
        assert line in text, line


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"])
async def test_methods_nobody_needs(api, method):
    answer = await api.ask(method, BASE)
    assert (answer.status, answer.json["reason"]) == (405, "MethodNotAllowed")
    assert (await api.ask(method, BASE, token=OTHER)).status == 403


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", BASE),
        ("POST", f"{BASE}/x"),
        ("PATCH", BASE),
        ("POST", "/api/v1/configmaps"),
        ("DELETE", "/api/v1/configmaps"),
        ("DELETE", "/api/v1/namespaces"),
        ("DELETE", f"{BASE.replace('configmaps', 'services')}/s/status"),
        ("GET", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("POST", "/version"),
    ],
)
async def test_verbs_in_the_wrong_place(api, method, path):
    assert (await api.ask(method, path, {} if method != "GET" else None)).status == 405


async def test_a_body_too_large(api):
    answer = await api.ask("POST", BASE, b"", too_large=True)
    assert (answer.status, answer.json["message"]) == (413, f"Request entity too large: limit is {MAX_BODY}")


async def test_a_body_in_gzip_is_not_understood(api):
    packed = gzip.compress(json.dumps({"metadata": {"name": "c"}}).encode())
    answer = await api.ask("POST", BASE, packed, headers={"content-encoding": "gzip"})
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")


async def test_warnings_cannot_break_out_of_their_header(api):
    body = {
        "metadata": {"name": "c"},
        'evil\r\nSet-Cookie: "x"': 1,
        'qu"ote\\': 1,
        **{f"f{n}{'x' * 400}": 1 for n in range(50)},
    }
    answer = await api.ask("POST", BASE, body, query="fieldValidation=Warn")
    assert answer.status == 201
    assert answer.warnings
    assert all("\r" not in warning and "\n" not in warning for warning in answer.warnings)
    assert sum(map(len, answer.warnings)) < 6000
    answer = await api.ask("POST", BASE, {"metadata": {"name": "d"}, 'qu"ote\\': 1}, query="fieldValidation=Warn")
    assert answer.warnings == [r'299 - "unknown field \"qu\"ote\\\""']


async def test_a_store_that_fails_is_a_503(api, monkeypatch, caplog):
    async def fail(writes):
        raise Unavailable("the disk is full")

    monkeypatch.setattr(api.store, "commit", fail)
    answer = await api.ask("POST", BASE, {"metadata": {"name": "c"}})
    assert (answer.status, answer.json["message"]) == (503, "the disk is full")
    assert answer.header("Retry-After") == "1"
    assert "the disk is full" in caplog.text
    assert "Traceback" not in caplog.text


async def test_a_mistake_of_ours_is_a_500_with_its_traceback_in_the_log(api, monkeypatch, caplog):
    def fail(*_):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("seamark.api.state.read.Reader.get", fail)
    answer = await api.ask("GET", f"{BASE}/x")
    assert (answer.status, answer.json["message"]) == (500, "Internal error occurred: oops")
    assert "ZeroDivisionError" in caplog.text


async def test_health(api):
    assert (await api.ask("GET", "/livez", token=None)).body == b"ok"
    assert b"[+]store ok" in (await api.ask("GET", "/readyz?verbose", token=None)).body
    assert (await api.ask("GET", "/readyz/store")).body == b"ok"
    assert (await api.ask("GET", "/healthz/nothing")).status == 404
    api.api.cache.lost = Unavailable("gone")
    answer = await api.ask("GET", "/readyz")
    assert (answer.status, b"[+]ping ok\n[-]store failed: gone\n" in answer.body) == (500, True)
    assert (await api.ask("GET", "/readyz/store")).status == 500
    assert (await api.ask("GET", "/livez")).status == 200
    api.api.cache.lost = None


async def test_health_without_some_of_its_checks(api):
    verbose = (await api.ask("GET", "/healthz?verbose&exclude=store")).body
    assert verbose == b"[+]ping ok\n[+]store excluded: ok\nhealthz check passed\n"
    unknown = (await api.ask("GET", "/livez?verbose=1&exclude=b&exclude=a&exclude=ping")).body
    assert unknown == (
        b"[+]ping excluded: ok\n"
        b'warn: some health checks cannot be excluded: no matches for "a","b"\n'
        b"livez check passed\n"
    )
    assert (await api.ask("GET", "/readyz?exclude=nothing")).body == b"ok"
    api.api.cache.lost = Unavailable("gone")
    assert (await api.ask("GET", "/healthz?exclude=store")).body == b"ok"
    answer = await api.ask("GET", "/healthz?exclude=ping&note=verbose")
    assert (answer.status, b"[+]ping excluded: ok\n[-]store failed: gone\n" in answer.body) == (500, True)
    api.api.cache.lost = None
    assert (await api.ask("GET", "/healthz?note=verbose")).body == b"ok"


async def test_a_timeout_must_be_a_duration(api):
    assert (await api.ask("GET", f"{BASE}?timeout=30s")).status == 200
    answer = await api.ask("GET", f"{BASE}?timeout=soon")
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")


async def test_strangers_are_told_nothing(api):
    assert (await api.ask("GET", BASE, token=None)).status == 403
    assert (await api.ask("GET", BASE, token="nobody")).status == 401
    assert (await api.ask("GET", "/nowhere", token=None)).status == 403
    assert (await api.ask("GET", "/nowhere", token=ADMIN)).status == 404


async def test_documents_about_all_kinds_are_made_beside_other_requests(api, monkeypatch):
    made_by = []
    answer = OpenApi.answer

    def noted(self, request):
        made_by.append(threading.current_thread())
        return answer(self, request)

    monkeypatch.setattr(OpenApi, "answer", noted)
    both = await asyncio.gather(api.get("/openapi/v2"), api.get("/openapi/v3"))
    assert [set(each) >= {"paths"} for each in both] == [True, True]
    assert len(made_by) == 2
    assert threading.main_thread() not in made_by
    assert (await api.ask("POST", "/openapi/v2")).status == 405


YAML = {"accept": "application/yaml"}


async def test_lists_in_yaml_are_written_beside_other_requests(api, monkeypatch):
    await api.post(BASE, {"metadata": {"name": "c"}, "data": {"k": "v", "long": "x" * LARGE_YAML}})
    by, dump = [], yaml_text.dump
    monkeypatch.setattr(yaml_text, "dump", lambda value: by.append(threading.current_thread()) or dump(value))
    answer = await api.ask("GET", BASE, headers=YAML)
    assert (answer.status, b"k: v" in answer.body) == (200, True)
    assert (len(by), threading.current_thread() in by) == (1, False)


async def test_a_list_in_yaml_is_not_written_for_a_client_that_is_gone(api, monkeypatch):
    await api.post(BASE, {"metadata": {"name": "c"}, "data": {"long": "x" * LARGE_YAML}})
    monkeypatch.setattr(yaml_text, "dump", lambda value: pytest.fail("no client will read it"))
    headers = YAML | {"authorization": f"Bearer {ADMIN}"}
    await api.api.application(Request("GET", BASE, "", headers, gone=True))


@pytest.mark.parametrize(
    ("host", "keys"),
    [
        ("kubernetes.default.svc.cluster.local", "https://kubernetes.default.svc.cluster.local/openid/v1/jwks"),
        ("[::1]:6443", "https://[::1]:6443/openid/v1/jwks"),
        ("", "https://127.0.0.1:6443/openid/v1/jwks"),
    ],
)
def test_the_keys_are_where_the_client_found_us(host, keys):
    assert keys_beside("https://127.0.0.1:6443", host) == keys


async def test_how_the_health_checks_went_is_told_as_metrics(api):
    assert (await api.ask("GET", "/metrics/slis")).body.strip() == b""
    for path in ("/readyz/store", "/readyz/store", "/livez", "/readyz/nothing"):
        await api.ask("GET", path)
    api.api.cache.lost = Unavailable("gone")
    await api.ask("GET", "/readyz/store")
    answer = await api.ask("GET", "/metrics/slis")
    assert answer.type.startswith("text/plain; version=0.0.4")
    assert {line for line in answer.body.decode().splitlines() if not line.startswith("#")} == {
        'kubernetes_healthcheck{name="ping",type="livez"} 1',
        'kubernetes_healthcheck{name="store",type="readyz"} 0',
        'kubernetes_healthchecks_total{name="ping",status="success",type="livez"} 1',
        'kubernetes_healthchecks_total{name="store",status="error",type="readyz"} 1',
        'kubernetes_healthchecks_total{name="store",status="success",type="readyz"} 2',
    }
    api.api.cache.lost = None
