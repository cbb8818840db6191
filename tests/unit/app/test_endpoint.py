import pytest

from app.endpoint import Endpoint, Status, Step, failure_reason, next_step
from app.registry import Registry
from deployments.spec import EndpointSpec

SPEC = EndpointSpec(name="e", model="m")


@pytest.mark.parametrize(
    ("status", "application", "step"),
    [
        (Status.CREATING, None, Step(None, "deploy")),
        (Status.CREATING, "DEPLOYING", Step(None)),
        (Status.CREATING, "RUNNING", Step(Status.IN_SERVICE)),
        (Status.CREATING, "DEPLOY_FAILED", Step(Status.FAILED, "delete", "ValueError: the head is wrong")),
        (Status.IN_SERVICE, "RUNNING", Step(None)),
        (Status.IN_SERVICE, "DEPLOYING", Step(None)),  # scaling
        (Status.IN_SERVICE, "UNHEALTHY", Step(None)),  # Serve is replacing a replica
        (Status.IN_SERVICE, None, Step(Status.CREATING, "deploy")),  # Ray was restarted
        (Status.FAILED, "DEPLOY_FAILED", Step(None, "delete")),
        (Status.FAILED, None, Step(None)),
        (Status.DELETING, "RUNNING", Step(None, "delete")),
        (Status.DELETING, "DELETING", Step(None)),
        (Status.DELETING, None, Step(None, "forget")),
    ],
)
def test_what_is_done_next(status, application, step):
    endpoint = Endpoint(spec=SPEC, status=status, deployed=True)
    assert next_step(endpoint, application, "Traceback\n  ray::x\nValueError: the head is wrong\n") == step


def test_a_changed_spec_is_given_to_serve_though_the_old_one_runs():
    assert next_step(Endpoint(spec=SPEC, status=Status.UPDATING), "RUNNING", "") == Step(None, "deploy")


def test_the_reason_is_the_error_not_the_traceback():
    message = "The deployment failed to start 1 times.\nray.exceptions.RayTaskError(ValueError): ray::ServeReplica\n  File x\nValueError: bad head"
    assert failure_reason(message) == "ValueError: bad head"
    several = "RuntimeError: 1 validation error for ModelConfig\n  Value error, max_model_len (9) is too long\n    For further information visit x"
    assert failure_reason(several) == "RuntimeError: 1 validation error for ModelConfig Value error, max_model_len (9) is too long"
    assert failure_reason("") == "the application failed to start"


def test_the_registry_remembers(tmp_path):
    path = tmp_path / "registry.sqlite"
    Registry(path).put(Endpoint(spec=SPEC).into(Status.FAILED, "why"))
    again = Registry(path)
    assert again.get("e").failure_reason == "why"
    assert [endpoint.name for endpoint in again.all()] == ["e"]
    again.remove("e")
    assert Registry(path).get("e") is None
