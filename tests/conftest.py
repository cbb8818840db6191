"""One Ray and three engines for the whole session: P-EAGLE, EAGLE-3 and no speculation, on the CPU default."""

import os
from types import SimpleNamespace

import pytest

from app.client import Client
from app.ray_environment import ENVIRONMENT
from deployments.cpu import too_small
from drafter.target import prepare_target

URL = "http://127.0.0.1:8123"
P_EAGLE, EAGLE3, PLAIN = "p-eagle", "eagle3", "plain"


def pytest_collection_modifyitems(items):
    """Tests that start engines of their own come before the session's engines, which stay: memory is for one lot."""
    items.sort(key=lambda item: item.get_closest_marker("alone") is None)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    if reason := too_small(endpoints=4):
        pytest.skip(reason)
    models = prepare_target().parent
    home = tmp_path_factory.mktemp("home")  # a registry of its own
    (home / "models").symlink_to(models)
    os.environ |= {
        "PEAGLE_HOME": str(home),
        "PEAGLE_MODEL_ROOTS": str(tmp_path_factory.getbasetemp()),
        **ENVIRONMENT,
        "RAY_metrics_report_interval_ms": "2000",
    }

    import ray
    from ray import serve

    from app.main import build

    ray.init(address="local", num_cpus=8, include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": 8123})
    methods = {P_EAGLE: "p_eagle", EAGLE3: "eagle3", PLAIN: "none"}
    endpoints = [{"model": "smollm2-135m-instruct", "name": name, "speculation": method} for name, method in methods.items()]
    serve.run(build({"endpoints": endpoints}), name="peagle", route_prefix="/")
    client = Client(URL)
    for name in methods:
        client.wait(name, timeout_s=900)
    yield SimpleNamespace(url=URL, client=client, models=models, metrics_port=ray.nodes()[0]["MetricsExportPort"])
    serve.shutdown()
    ray.shutdown()


@pytest.fixture(scope="session")
def openai(server):
    from openai import OpenAI

    return OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=300)
