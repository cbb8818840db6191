"""Every part killed or frozen under load from Locust's users: what is accepted is answered, with the text it would have had."""

import json
import re
import signal
import threading
import time

import httpx
import pytest
from rich.console import Console

from loadtests.record import RequestRecord
from loadtests.report import fault_table, other_texts, read_records
from tests.collector import collector
from tests.stack import eventually, kill, locust, processes, stack

pytestmark = pytest.mark.alone

LIMITS = {"hang_s": 8, "max_queued_requests": 4, "deadline_s": 120}
ENDPOINT = {"model": "smollm2-135m-instruct", "name": "e", "min_replicas": 2, "max_replicas": 2, "max_num_seqs": 4, "limits": LIMITS}
runs: dict[str, list[RequestRecord]] = {}
retries: dict[str, int] = {}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder, arguments = tmp_path_factory.mktemp("faults"), json.dumps({"endpoints": [ENDPOINT]})
    with collector() as traces:
        traced = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": traces.url,
            "OTEL_BSP_SCHEDULE_DELAY": "500",
            "RAY_SERVE_TRACING_EXPORTER_IMPORT_PATH": "deployments.tracing:exporters",
            "RAY_SERVE_TRACING_SAMPLING_RATIO": "1",
        }
        with stack(folder, arguments, port=8125, variables=traced) as started:
            eventually(lambda: whole(started), timeout_s=600)
            started.spans = traces.spans
            yield started
    Console(width=120, force_terminal=False).print(fault_table(runs, retries))


def running(server):
    (endpoint,) = server.client.call("GET", "/v1/endpoints")
    return endpoint["running"]


def whole(server):
    """Both replicas run, each with its engine, and none is left behind."""
    return running(server) == len(processes(server.process, "VLLM::EngineCore")) == 2


def retried(server):
    port = int(re.search(r"metrics: (\d+)", server.log.read_text()).group(1))
    found = re.findall(r"^ray_peagle_retries_total\{.*\} (\S+)$", httpx.get(f"http://127.0.0.1:{port}/metrics").text, re.M)
    return int(sum(map(float, found)))


def under_load(server, tmp_path, name, fault, users=4, seconds=14, kinds=("ChatUser",)):
    """Locust's users for a while, and a fault in the middle; the records."""
    before, records = retried(server), tmp_path / "records"
    load = locust(server.url, "e", records, users=users, seconds=seconds, arguments=kinds)
    time.sleep(6)
    fault()
    assert load.wait(timeout=200) == 0
    runs[name] = read_records(records)
    eventually(lambda: whole(server))
    time.sleep(3)  # metrics are reported every 2 s
    retries[name] = retried(server) - before
    return runs[name]


def first(server, title):
    return processes(server.process, title)[0]


def test_the_figures_are_those_of_all_replicas(server):
    figures = server.client.call("GET", "/v1/endpoints/e/stats")
    assert (figures["replicas"], figures["queued"], figures["running"]) == (2, 0, 0)
    assert figures["answer_tokens"] >= 2 * 16  # each replica's first request, before it is in service


def test_a_request_is_one_trace_from_the_client_to_the_engine(server):
    trace, client = "0123456789abcdef" * 2, "fedcba9876543210"
    body = {"model": "e", "messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 8}
    httpx.post(f"{server.url}/v1/chat/completions", json=body, headers={"traceparent": f"00-{trace}-{client}-01"}, timeout=60).raise_for_status()
    eventually(lambda: any(span.trace == trace and span.name == "llm_request" for span in server.spans), timeout_s=30)
    spans = {span.id: span for span in list(server.spans) if span.trace == trace}
    span, names = next(span for span in spans.values() if span.name == "llm_request"), []
    while span is not None:
        names.append(span.name)
        last, span = span, spans.get(span.parent)
    assert names == [
        "llm_request",
        "replica_handle_request SpeculativeWorker answer",
        "route_to_replica SpeculativeWorker answer",
        "replica_handle_request Gateway __call__",
        "route_to_replica Gateway __call__",
        "proxy_http_request Gateway POST /v1/chat/completions",
    ]
    assert last.parent == client


@pytest.mark.parametrize(
    "title",
    [
        pytest.param("VLLM::Worker", marks=pytest.mark.slow),
        pytest.param("VLLM::EngineCore", marks=pytest.mark.slow),
        "ray::ServeReplica:endpoint-e.0",
    ],
)
def test_a_killed_engine_loses_nothing(server, tmp_path, title):
    killed = first(server, title)
    records = under_load(server, tmp_path, f"kill -9 {title}", killed.kill)
    assert {record.outcome for record in records} == {"answered"}
    assert other_texts(records) == 0
    assert not killed.is_running()


@pytest.mark.slow
def test_a_frozen_engine_is_replaced(server, tmp_path):
    frozen = first(server, "VLLM::EngineCore")
    records = under_load(server, tmp_path, "SIGSTOP an engine", lambda: frozen.send_signal(signal.SIGSTOP), seconds=16)
    assert {record.outcome for record in records} == {"answered"}
    assert other_texts(records) == 0
    assert not frozen.is_running()


@pytest.mark.slow
def test_a_killed_gateway_loses_nothing_that_clients_send_again(server, tmp_path):
    records = under_load(server, tmp_path, "kill -9 a gateway", lambda: first(server, "ray::ServeReplica:peagle:Gateway").kill())
    assert {record.outcome for record in records} == {"answered"}
    assert 0 < sum(record.sent_again for record in records) <= 4  # a connection each user, its own alone
    assert other_texts(records) == 0


@pytest.mark.slow
def test_a_full_queue_refuses_at_once_and_says_when_to_come_back(server, tmp_path):
    kinds = ("ChatUser", "SageMakerUser")
    records = under_load(server, tmp_path, "a full queue", lambda: None, users=60, seconds=12, kinds=kinds)
    assert {record.outcome for record in records} == {"answered", "refused"}
    refusals = [record for record in records if record.outcome == "refused"]
    assert {(record.scenario, record.status) for record in refusals} == {("ChatUser", 429), ("SageMakerUser", 503)}
    assert all("try again in" in record.error and record.retry_after_s >= 1 for record in refusals)
    assert other_texts(records) == 0


def test_a_request_two_engines_die_of_is_refused_from_then_on(server):
    poison = {"model": "e", "prompt": "this is what kills engines", "max_tokens": 400, "temperature": 0, "ignore_eos": True}
    with httpx.Client(base_url=server.url, timeout=200) as client:
        answers = []
        request = threading.Thread(target=lambda: answers.append(client.post("/v1/completions", json=poison, headers={"X-Request-Id": "poison-1"})))
        request.start()
        for _ in range(2):
            eventually(lambda: whole(server))
            time.sleep(4)
            kill(*processes(server.process, "VLLM::EngineCore"))  # both: whichever has it
        request.join(timeout=60)
        again = client.post("/v1/completions", json=poison)  # refused by name: no engine is needed for that
    assert [(answer.status_code, answer.json()["error"]["type"]) for answer in (*answers, again)] == [(400, "invalid_request_error")] * 2
    assert "died" in again.json()["error"]["message"]
