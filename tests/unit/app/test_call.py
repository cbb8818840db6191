"""What a client can say about its request in headers."""

import pytest

from app.call import read_call
from app.dispatch import Traffic
from app.endpoint import EndpointError

BODY = {"model": "e", "prompt": "hello"}


def test_headers_set_the_deadline_and_the_id():
    call = read_call("completions", BODY, {"x-request-timeout": "2.5", "x-request-id": "mine", "x-peagle-resume": "off"})
    assert (call.timeout_s, call.id, call.resume) == (2.5, "mine", False)
    assert read_call("completions", BODY, {}).timeout_s is None


@pytest.mark.parametrize(
    "headers", [{"x-request-timeout": "soon"}, {"x-request-timeout": "-1"}, {"x-request-timeout": "nan"}, {"x-peagle-resume": "maybe"}]
)
def test_a_header_that_says_nothing_is_named(headers):
    with pytest.raises(EndpointError) as refused:
        read_call("completions", BODY, headers)
    assert refused.value.kind == "invalid"
    assert refused.value.parameter.lower() in headers


def test_the_same_request_is_known_again():
    assert read_call("chat", {"a": 1, "b": 2}, {"x-request-id": "1"}).digest == read_call("chat", {"b": 2, "a": 1}, {}).digest
    assert read_call("chat", BODY, {}).digest != read_call("completions", BODY, {}).digest


def test_retry_after_is_when_half_of_the_queue_is_gone():
    traffic = Traffic()
    traffic.waiting = 40
    assert traffic.retry_after(0) == 5  # nothing known yet
    for second in range(21):
        traffic.finished(second)
    assert traffic.drain_s(20) == pytest.approx(40 / 1.05)
    assert traffic.retry_after(20) == 20
    assert traffic.retry_after(100) == 5  # what was known is old
