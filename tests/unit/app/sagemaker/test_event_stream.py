"""The framing is what botocore decodes."""

import pytest
from botocore.eventstream import EventStreamBuffer

from app.sagemaker.event_stream import model_stream_error, payload_part


@pytest.mark.parametrize("payload", [b"", b"data: {}\n\n", "naïve 文字".encode(), bytes(100_000)])
def test_parts_come_back_whole_however_they_are_cut(payload):
    framed = payload_part(payload) + payload_part(b"end")
    buffer = EventStreamBuffer()
    for start in range(0, len(framed), 997):
        buffer.add_data(framed[start : start + 997])
    first, second = list(buffer)
    assert (first.payload, second.payload) == (payload, b"end")
    assert first.headers == {":message-type": "event", ":event-type": "PayloadPart", ":content-type": "application/octet-stream"}


def test_an_error_is_an_exception_message():
    buffer = EventStreamBuffer()
    buffer.add_data(model_stream_error("it broke"))
    (message,) = list(buffer)
    assert message.headers[":exception-type"] == "ModelStreamError"
    assert b"it broke" in message.payload
