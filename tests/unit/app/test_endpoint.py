import json
import sqlite3

import pytest

from app.endpoint import Application, Endpoint, Status, Step, failure_reason, next_step
from app.registry import MIGRATIONS, Registry
from deployments.spec import EndpointSpec, application_name, application_version

SPEC = EndpointSpec(name="e", model="m")


CREATING, IN_SERVICE, UPDATING, FAILED, DELETING = Status.CREATING, Status.IN_SERVICE, Status.UPDATING, Status.FAILED, Status.DELETING
WRONG = "Traceback\n  ray::x\nValueError: the head is wrong\n"


def apps(**statuses):
    """``apps(v0="RUNNING")``: Serve's word for version 0."""
    return {int(version[1:]): Application(status, WRONG) for version, status in statuses.items()}


@pytest.mark.parametrize(
    ("status", "applications", "becomes", "deploy", "delete"),
    [
        (CREATING, {}, CREATING, 0, ()),
        (CREATING, apps(v0="DEPLOYING"), CREATING, None, ()),
        (CREATING, apps(v0="RUNNING"), IN_SERVICE, None, ()),
        (CREATING, apps(v0="DEPLOY_FAILED"), FAILED, None, (0,)),
        (CREATING, apps(v0="DELETING"), CREATING, None, ()),
        (IN_SERVICE, apps(v0="RUNNING"), IN_SERVICE, None, ()),
        (IN_SERVICE, apps(v0="DEPLOYING"), IN_SERVICE, None, ()),  # scaling
        (IN_SERVICE, apps(v0="UNHEALTHY"), IN_SERVICE, None, ()),  # Serve is replacing a replica
        (IN_SERVICE, {}, CREATING, 0, ()),  # Ray was restarted
        (IN_SERVICE, apps(v0="RUNNING", v7="RUNNING"), IN_SERVICE, None, (7,)),  # left over from an update
        (FAILED, apps(v0="DEPLOY_FAILED"), FAILED, None, (0,)),
        (FAILED, {}, FAILED, None, ()),
        (DELETING, apps(v0="RUNNING", v1="DEPLOYING"), DELETING, None, (0, 1)),
        (DELETING, apps(v0="DELETING"), DELETING, None, ()),
    ],
)
def test_what_is_done_next(status, applications, becomes, deploy, delete):
    step = next_step(Endpoint(spec=SPEC, status=status, deployed=True), applications)
    assert (step.endpoint.status, step.deploy, step.delete) == (becomes, deploy, delete)
    if becomes is FAILED and status is CREATING:
        assert step.endpoint.failure_reason == "ValueError: the head is wrong"


def test_a_deleted_endpoint_is_forgotten_when_nothing_of_it_runs():
    assert next_step(Endpoint(spec=SPEC, status=DELETING), {}) == Step(None)


def updating(deployed):
    endpoint = Endpoint(spec=SPEC, status=IN_SERVICE, deployed=True).updated_to(SPEC.model_copy(update={"model": "n"}))
    return endpoint.model_copy(update={"successor": endpoint.successor.model_copy(update={"deployed": deployed})})


@pytest.mark.parametrize(
    ("deployed", "applications", "deploy"),
    [
        (False, apps(v0="RUNNING"), 1),
        (True, apps(v0="RUNNING", v1="DEPLOYING"), None),
        (True, apps(v1="DEPLOYING"), 0),  # Ray was restarted: first what served
        (True, apps(v0="RUNNING"), 1),
    ],
)
def test_an_update_starts_beside_what_serves(deployed, applications, deploy):
    endpoint = updating(deployed)
    assert next_step(endpoint, applications) == Step(endpoint, deploy=deploy)
    assert endpoint.application == "endpoint-e.0"


def test_an_update_takes_over_once_it_runs_and_what_served_goes_after():
    step = next_step(updating(deployed=True), apps(v0="RUNNING", v1="RUNNING"))
    assert (step.endpoint.status, step.endpoint.spec.model, step.endpoint.application, step.delete) == (IN_SERVICE, "n", "endpoint-e.1", ())
    assert next_step(step.endpoint, apps(v0="RUNNING", v1="RUNNING")).delete == (0,)


def test_a_failed_update_rolls_back_and_says_why():
    step = next_step(updating(deployed=True), apps(v0="RUNNING", v1="DEPLOY_FAILED"))
    assert (step.endpoint.status, step.endpoint.spec.model, step.delete) == (IN_SERVICE, "m", (1,))
    assert "rolled back: ValueError: the head is wrong" in step.endpoint.failure_reason
    assert step.endpoint.updated_to(SPEC).successor.version == 2  # the failed one may still be going


def test_scaling_gives_the_same_application_to_serve_again():
    endpoint = Endpoint(spec=SPEC, status=IN_SERVICE, deployed=True).scaled_to(SPEC)
    assert next_step(endpoint, apps(v0="RUNNING")) == Step(endpoint, deploy=0)


def test_an_applications_name_tells_endpoint_and_version():
    assert application_version(application_name("a-b-3", 12)) == ("a-b-3", 12)
    assert application_version("peagle") is None
    assert application_version("endpoint-x") is None


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


CHANGED = SPEC.model_copy(update={"model": "n"})


@pytest.mark.parametrize(
    ("said", "known", "spec", "status", "successor"),
    [
        (SPEC, None, SPEC, CREATING, None),
        (SPEC, Endpoint(spec=SPEC, declared=SPEC, status=IN_SERVICE), SPEC, IN_SERVICE, None),
        (SPEC, Endpoint(spec=CHANGED, declared=SPEC, status=IN_SERVICE), CHANGED, IN_SERVICE, None),  # a client's update stands
        (CHANGED, Endpoint(spec=SPEC, declared=SPEC, status=IN_SERVICE), SPEC, UPDATING, CHANGED),
        (CHANGED, Endpoint(spec=SPEC, status=IN_SERVICE), SPEC, UPDATING, CHANGED),  # a client's endpoint, named from now on
        (CHANGED, Endpoint(spec=SPEC, declared=SPEC), CHANGED, CREATING, None),
        (SPEC, Endpoint(spec=SPEC, declared=SPEC, status=FAILED), SPEC, CREATING, None),
    ],
)
def test_what_the_arguments_say_of_an_endpoint(said, known, spec, status, successor):
    endpoint = Endpoint.declared_as(said, known)
    assert (endpoint.spec, endpoint.status, endpoint.declared) == (spec, status, said)
    assert (endpoint.successor.spec if endpoint.successor else None) == successor
    assert Endpoint.declared_as(said, endpoint) == endpoint


def test_a_registry_that_knew_only_whether_an_endpoint_was_declared(tmp_path):
    database = sqlite3.connect(tmp_path / "old.sqlite", isolation_level=None)
    for migration in MIGRATIONS[:2]:
        database.execute(migration)
    database.execute("PRAGMA user_version = 2")
    for name, declared in (("theirs", True), ("clients", False)):
        old = Endpoint(spec=EndpointSpec(name=name, model="m")).model_dump(mode="json") | {"declared": declared}
        database.execute("INSERT INTO endpoints VALUES (?, ?)", (name, json.dumps(old)))
    database.close()
    clients, theirs = Registry(tmp_path / "old.sqlite").all()
    assert theirs.declared == theirs.spec
    assert clients.declared is None
