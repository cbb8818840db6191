"""Ray stopped in the middle of everything: from what is on disk, a new Ray ends where the old one was going."""

import os
import subprocess
import sys
import time

import psutil
import pytest

from app.catalog import DeployRequest
from app.client import Client, GatewayError
from app.endpoint import Endpoint, Status
from app.registry import Registry
from drafter.target import prepare_target

pytestmark = pytest.mark.alone

MODEL = "smollm2-135m-instruct"
START = """
import time
import ray
from ray import serve
from app.main import build
ray.init(address="local", num_cpus=8, include_dashboard=False, log_to_driver=False)
serve.start(http_options={"host": "127.0.0.1", "port": 8124})
serve.run(build({}), name="peagle", route_prefix="/")
print("applications:", *serve.status().applications, flush=True)
while True:
    time.sleep(1)
    print("applications:", *serve.status().applications, flush=True)
"""


def spec(name, k=None):
    speculation = {"speculation": "none"} if k is None else {"num_speculative_tokens": k}
    return DeployRequest(model=MODEL, name=name, **speculation).to_spec()


@pytest.fixture
def restarted(tmp_path):
    """A stack that starts over what a killed one left: one endpoint creating, one updating, one deleting, one in service."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "models").symlink_to(prepare_target().parent)
    registry = Registry(home / "registry.sqlite")
    registry.put(Endpoint(spec=spec("creating"), deployed=True))
    updating = Endpoint(spec=spec("updating"), deployed=True, status=Status.IN_SERVICE).updated_to(spec("updating", k=2))
    registry.put(updating.model_copy(update={"successor": updating.successor.model_copy(update={"deployed": True})}))
    registry.put(Endpoint(spec=spec("deleting"), deployed=True, status=Status.DELETING))
    log = (tmp_path / "log").open("w+")
    environment = {**os.environ, "PEAGLE_HOME": str(home), "RAY_worker_niceness": "0"}
    process = psutil.Process(subprocess.Popen([sys.executable, "-c", START], env=environment, stdout=log, stderr=log).pid)
    yield Client("http://127.0.0.1:8124"), tmp_path / "log"
    for one in [*process.children(recursive=True), process]:
        one.kill()


def test_each_endpoint_ends_where_it_was_going(restarted):
    client, log = restarted
    deadline = time.monotonic() + 420
    while time.monotonic() < deadline:
        try:
            endpoints = {one["spec"]["name"]: one for one in client.call("GET", "/v1/endpoints")}
        except GatewayError:
            endpoints = {}
        if endpoints and all(one["status"] == "InService" for one in endpoints.values()):
            break
        time.sleep(1)
    outcome = {name: (one["status"], one["version"], one["failure_reason"]) for name, one in endpoints.items()}
    assert outcome == {"creating": ("InService", 0, None), "updating": ("InService", 1, None)}
    assert endpoints["updating"]["spec"]["speculation"]["num_speculative_tokens"] == 2
    for name in endpoints:
        answer = client.call("POST", "/v1/completions", {"model": name, "prompt": "The capital of France is", "max_tokens": 4, "temperature": 0})
        assert "Paris" in answer["choices"][0]["text"]
    deadline = time.monotonic() + 60
    wanted = {"peagle", "endpoint-creating.0", "endpoint-updating.1"}
    while time.monotonic() < deadline and set(log.read_text().rsplit("applications:", 1)[-1].split()) != wanted:
        time.sleep(1)
    assert set(log.read_text().rsplit("applications:", 1)[-1].split()) == wanted
