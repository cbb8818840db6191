"""Requests drawn from the gateway's own OpenAPI document, whole and broken: each is answered, none with an error of ours."""

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error

from app.gateway import api
from tests.conftest import URL

schema = schemathesis.openapi.from_dict(api.openapi())


@schema.parametrize()
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_route_answers_whatever_it_is_sent(server, case):
    try:
        response = case.call(base_url=URL, timeout=60)
    except requests.Timeout:
        pytest.fail(f"no answer to {case.as_curl_command()}")
    case.validate_response(response, checks=[not_a_server_error])
