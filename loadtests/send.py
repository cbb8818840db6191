"""One request from a Locust user: sent, its stream read, its record left.

``HttpUser`` reads what has come as it comes (``iter_content(None)``). Locust's ``FastHttpUser`` waits until a kibibyte is there, which is
most of an answer: its times to first token are wrong (``tests/e2e/test_locust.py``).
"""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from locust import HttpUser
from locust.env import Environment

from loadtests.record import Outcome, RequestRecord, Stream, digest

REFUSED = (429, 503, 504)


class Request(NamedTuple):
    """What is asked of which route."""

    path: str
    body: dict[str, Any]
    stream: bool = True
    event_stream: bool = False  # AWS's framing


def send(user: HttpUser, request: Request, due: float | None = None) -> str:
    """Send a request, read its answer, leave a record; the answer's text. What a broken connection cut is sent again, up to ``--retries`` times.

    Args:
        user: who sends.
        request: what.
        due: when it was to be sent, on ``time.perf_counter``'s clock; later sending counts as waiting.
    """
    options = user.environment.parsed_options
    body = {"model": options.endpoint, "max_tokens": options.max_tokens, "temperature": 0, **request.body}
    if request.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    start = time.perf_counter() if due is None else due
    for sent_again in range(options.retries + 1):
        record, text = _send_once(user, request, body, start, sent_again)
        if record.outcome in ("answered", "refused") or 400 <= record.status < 500:
            break
    _tell(user.environment, record)
    return text


def _send_once(user: HttpUser, request: Request, body: dict[str, Any], start: float, sent_again: int) -> tuple[RequestRecord, str]:
    kind = type(user).__name__
    began = time.time() - (time.perf_counter() - start)
    stream, status, error = Stream(time.perf_counter, start), 0, ""
    with user.client.post(request.path, json=body, stream=True, catch_response=True, name=kind) as response:
        status = response.status_code
        try:
            if status == 200:
                chunks = response.iter_content(None)
                if request.stream:
                    stream.read(_unframed(chunks) if request.event_stream else chunks)
                else:
                    stream.read_whole(b"".join(chunks))
            else:
                error = response.text[:300]
        except OSError as broken:
            error = f"{type(broken).__name__}: {broken}"
        record = RequestRecord(
            scenario=kind, start=began, outcome=_outcome(status, stream), status=status, error=error or stream.error,
            retry_after_s=float(response.headers["Retry-After"]) if "Retry-After" in (response.headers or {}) else None,
            sent_again=sent_again, ttft_s=stream.ttft_s,
            latency_s=time.perf_counter() - start, longest_stall_s=stream.longest_stall_s, inter_chunk_s=stream.inter_chunk_s, chunks=stream.chunks,
            prompt_tokens=stream.usage.get("prompt_tokens", 0), completion_tokens=stream.usage.get("completion_tokens", 0),
            prompt=digest(str(body.get("messages", body.get("prompt")))), text=digest("".join(stream.texts)),
        )  # fmt: skip
        if record.outcome == "answered":
            response.success()
        else:
            response.failure(f"{record.outcome} ({status}): {record.error[:120]}")
    return record, "".join(stream.texts)


def _outcome(status: int, stream: Stream) -> Outcome:
    if status in REFUSED:
        return "refused"
    if status != 200:
        return "failed"
    return "answered" if stream.ended and not stream.error else "cut"


def _unframed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The payloads of AWS's event stream."""
    from botocore.eventstream import EventStreamBuffer

    buffer = EventStreamBuffer()
    for chunk in chunks:
        buffer.add_data(chunk)
        yield b"".join(event.payload for event in buffer)


def _tell(environment: Environment, record: RequestRecord) -> None:
    """Put a record in the file, and its times in Locust's own tables."""
    if environment.parsed_options and (path := environment.parsed_options.records):
        with Path(path).open("a") as file:
            file.write(record.model_dump_json() + "\n")
    times = {"TTFT": record.ttft_s, "TPOT": record.tpot_s, "inter-chunk": record.inter_chunk_s}
    for name, seconds in times.items():
        if seconds is not None:
            environment.events.request.fire(
                request_type=name,
                name=record.scenario,
                response_time=1000 * seconds,
                response_length=record.completion_tokens,
                exception=None,
                context={},
            )
