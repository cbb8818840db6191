"""A real Prometheus scrapes a real run: every chart's, rule's and alert's query has an answer."""

import re
import shutil
import subprocess
import time

import httpx
import pytest
import yaml

from app.cluster.panels import DASHBOARDS
from app.cluster.rules import ALERTS, RECORDED, rules
from tests.conftest import EAGLE3, P_EAGLE, PLAIN
from tests.stack import eventually

PORT = 9391
QUERIES = {
    f"{title}: {panel.title}: {query.legend}": query.expression for title, panels in DASHBOARDS.items() for panel in panels for query in panel.queries
}
QUERIES |= {f"rule {name}": name for name in RECORDED} | {f"alert {alert.name}": alert.query for alert in ALERTS}


@pytest.fixture(scope="module")
def prometheus(server, tmp_path_factory):
    if shutil.which("prometheus") is None:
        pytest.skip("no prometheus here: Debian's package has it")
    folder = tmp_path_factory.mktemp("prometheus")
    often = rules()
    for group in often["groups"]:
        group["interval"] = "1s"
    (folder / "rules.yml").write_text(yaml.safe_dump(often))
    # Less often than Ray reports, since what was not reported anew is not in a scrape.
    scraped = [{"job_name": "ray", "static_configs": [{"targets": [f"127.0.0.1:{server.metrics_port}"]}]}]
    config = {"global": {"scrape_interval": "3s", "evaluation_interval": "1s"}, "rule_files": ["rules.yml"], "scrape_configs": scraped}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    subprocess.run(["promtool", "check", "config", folder / "prometheus.yml"], check=True, capture_output=True)
    with (folder / "log").open("w") as log:
        command = [
            "prometheus",
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{PORT}",
        ]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    for _ in range(3):  # a rate needs figures from before and after
        for name in (P_EAGLE, EAGLE3, PLAIN):
            body = {"model": name, "messages": [{"role": "user", "content": "Count to ten."}], "max_tokens": 24, "temperature": 0}
            httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=120).raise_for_status()
        httpx.post(f"{server.url}/v1/chat/completions", json={"model": "nobody"}, timeout=120)
        eventually(lambda: ask("ray_peagle_requests_total"), timeout_s=60)
    yield
    process.terminate()
    process.wait()


def ask(expression):
    try:
        answer = httpx.get(f"http://127.0.0.1:{PORT}/api/v1/query", params={"query": expression}).json()
    except httpx.TransportError:
        return []
    assert answer["status"] == "success", answer
    return answer["data"]["result"]


def test_every_query_has_an_answer(prometheus):
    plain = {name: query.replace("$endpoint", ".*").replace("$__rate_interval", "5m") for name, query in QUERIES.items()}

    def unanswered():
        return [name for name, query in plain.items() if not [one for one in ask(query) if one["value"][1] != "NaN"]]

    for _ in range(30):
        if not (missing := unanswered()):
            break
        time.sleep(1)
    assert missing == []


def test_the_figures_are_the_endpoints_own(prometheus):
    lengths = {one["metric"]["model_name"]: float(one["value"][1]) for one in ask("endpoint:acceptance_length")}
    assert set(lengths) == {P_EAGLE, EAGLE3}
    assert all(1 <= length <= 5 for length in lengths.values())
    rates = [float(one["value"][1]) for one in ask(f'endpoint:acceptance_rate:by_position{{model_name="{P_EAGLE}"}}')]
    assert 1 <= len(rates) <= 4  # a position that was never accepted is not counted
    assert all(0 <= rate <= 1 for rate in rates)
    requests = ask(f'sum by (route, status) (ray_peagle_requests_total{{endpoint="{PLAIN}", route="/v1/chat/completions"}})')
    assert {one["metric"]["status"] for one in requests} >= {"200"}
    parts = {one["metric"]["part"] for one in ask("sum by (part) (ray_peagle_request_seconds_count)")}
    assert parts == {"gateway", "router", "engine"}
    assert {one["metric"]["status"] for one in ask(f'ray_peagle_endpoint_status{{endpoint="{PLAIN}"}} == 1')} == {"InService"}


def test_names_clients_make_up_are_no_labels(server, prometheus):
    text = httpx.get(f"http://127.0.0.1:{server.metrics_port}/metrics").text
    assert "nobody" not in re.sub(r"# .*", "", text)
