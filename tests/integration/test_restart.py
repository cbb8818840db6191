"""Ray stopped in the middle of everything: from what is on disk, a new Ray ends where the old one was going."""

import pytest

from app.catalog import DeployRequest
from app.endpoint import Endpoint, Status
from app.registry import Registry
from tests.stack import eventually, stack

pytestmark = [pytest.mark.alone, pytest.mark.slow]

MODEL = "smollm2-135m-instruct"


def spec(name, k=None):
    speculation = {"speculation": "none"} if k is None else {"num_speculative_tokens": k}
    return DeployRequest(model=MODEL, name=name, **speculation).to_spec()


@pytest.fixture
def restarted(tmp_path):
    """A stack that starts over what a killed one left: one endpoint creating, one updating, one deleting."""
    (tmp_path / "home").mkdir()
    registry = Registry(tmp_path / "home" / "registry.sqlite")
    registry.put(Endpoint(spec=spec("creating"), deployed=True))
    updating = Endpoint(spec=spec("updating"), deployed=True, status=Status.IN_SERVICE).updated_to(spec("updating", k=2))
    registry.put(updating.model_copy(update={"successor": updating.successor.model_copy(update={"deployed": True})}))
    registry.put(Endpoint(spec=spec("deleting"), deployed=True, status=Status.DELETING))
    with stack(tmp_path) as started:
        yield started


def test_each_endpoint_ends_where_it_was_going(restarted):
    def settled():
        endpoints = {one["spec"]["name"]: one for one in restarted.client.call("GET", "/v1/endpoints")}
        return endpoints if endpoints and all(one["status"] in ("InService", "Failed") for one in endpoints.values()) else None

    endpoints = eventually(settled, timeout_s=600)
    outcome = {name: (one["status"], one["version"], one["failure_reason"]) for name, one in endpoints.items()}
    assert outcome == {"creating": ("InService", 0, None), "updating": ("InService", 1, None)}
    assert endpoints["updating"]["spec"]["speculation"]["num_speculative_tokens"] == 2
    for name in endpoints:
        answer = restarted.client.call(
            "POST", "/v1/completions", {"model": name, "prompt": "The capital of France is", "max_tokens": 4, "temperature": 0}
        )
        assert "Paris" in answer["choices"][0]["text"]
    wanted = {"peagle", "endpoint-creating.0", "endpoint-updating.1"}
    eventually(lambda: set(restarted.log.read_text().rsplit("applications:", 1)[-1].split()) == wanted, timeout_s=60)
