"""The rendered Serve config on a Ray of two nodes, deployed as an operator would; one node is lost under load."""

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import httpx
import psutil
import pytest
import yaml

from app.client import Client
from app.cluster.render import CPU_DEFAULT
from app.ray_environment import ENVIRONMENT
from drafter.target import prepare_target
from loadtests.report import other_texts, read_records
from tests.stack import eventually, kill, locust, processes

pytestmark = [pytest.mark.alone, pytest.mark.slow]

CONFIG = Path(__file__).parents[2] / "cluster" / "serve" / f"{CPU_DEFAULT}.yaml"
LOGS = Path("/tmp/ray/session_latest/logs/serve")
URL = "http://127.0.0.1:8000"  # where the config listens


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "models").symlink_to(prepare_target().parent)
    environment = {
        **os.environ,
        "PEAGLE_HOME": str(folder),
        **ENVIRONMENT,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
    }
    bin_folder = Path(sys.executable).parent

    def run(*command):
        subprocess.run([bin_folder / command[0], *command[1:]], env=environment, check=True, capture_output=True, text=True, timeout=120)

    before = {process.pid for process in psutil.process_iter()}
    try:
        run("ray", "start", "--head", "--port=6399", "--num-cpus=2", "--node-ip-address=127.0.0.1", "--disable-usage-stats")
        yield SimpleNamespace(run=run, folder=folder, client=Client(URL))
    finally:
        titles = ("ray::", "VLLM::", "raylet", "gcs_server", "/ray/", "multiprocessing")
        started = [process for process in psutil.process_iter(["cmdline"]) if process.pid not in before]
        kill(*(one for one in started if any(title in " ".join(one.info["cmdline"] or []) for title in titles)))


def describe(cluster):
    return cluster.client.call("GET", f"/v1/endpoints/{CPU_DEFAULT}")


def replicas(raylet):
    return processes(raylet, "ray::ServeReplica:endpoint-")


def raylets():
    found = [one for one in psutil.process_iter(["cmdline", "create_time"]) if (one.info["cmdline"] or [""])[0].endswith("/raylet")]
    return sorted(found, key=lambda one: one.info["create_time"])


def test_serve_deploy_of_the_rendered_config_serves(cluster):
    cluster.run("serve", "deploy", str(CONFIG))
    eventually(lambda: describe(cluster)["status"] == "InService", timeout_s=400)
    body = {"model": CPU_DEFAULT, "prompt": "The capital of France is", "max_tokens": 4, "temperature": 0}
    assert "Paris" in cluster.client.call("POST", "/v1/completions", body)["choices"][0]["text"]
    assert cluster.client.call("GET", f"/v1/endpoints/{CPU_DEFAULT}/stats")["acceptance"]["drafts"] > 0


def test_a_requests_id_is_in_the_json_logs_of_all_it_went_through(cluster):
    body = {"model": CPU_DEFAULT, "prompt": "Hello", "max_tokens": 4}
    httpx.post(f"{URL}/v1/completions", json=body, headers={"X-Request-Id": "find-me"}, timeout=60).raise_for_status()

    def components():
        lines = [line for path in LOGS.glob("*.log") for line in path.read_text().splitlines() if "find-me" in line]
        found = [json.loads(line) for line in lines]
        return {one.get("deployment", one["component_name"]) for one in found if one["request_id"] == "find-me"}

    wanted = {"proxy", "peagle_Gateway", f"endpoint-{CPU_DEFAULT}.0_SpeculativeWorker"}
    eventually(lambda: components() >= wanted, timeout_s=20)


def test_replicas_on_two_nodes_and_the_loss_of_one(cluster, tmp_path):
    cluster.run("ray", "start", "--address=127.0.0.1:6399", "--num-cpus=1", "--disable-usage-stats")
    config = yaml.safe_load(CONFIG.read_text())
    config["applications"][0]["args"]["endpoints"][0] |= {"min_replicas": 2, "max_replicas": 2}
    (tmp_path / "two.yaml").write_text(yaml.safe_dump(config))
    cluster.run("serve", "deploy", str(tmp_path / "two.yaml"))
    eventually(lambda: (now := describe(cluster))["status"] == "InService" and now["running"] == 2, timeout_s=400)
    head, second = raylets()[-2:]
    eventually(lambda: len(replicas(head)) == 1)  # the one of before is gone
    assert len(replicas(second)) == 1
    load = locust(URL, CPU_DEFAULT, tmp_path / "records", users=4, seconds=20)
    eventually(lambda: (tmp_path / "records").exists(), timeout_s=60)
    kill(second, *second.children(recursive=True))
    assert load.wait(timeout=200) == 0
    records = read_records(tmp_path / "records")
    assert {record.outcome for record in records} == {"answered"}
    assert other_texts(records) == 0
    assert describe(cluster)["status"] == "InService"
    eventually(lambda: describe(cluster)["running"] == 1)
