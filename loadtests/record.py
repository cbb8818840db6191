"""What one request was to its client: when the first token came, how the rest came, and how it ended."""

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Outcome = Literal["answered", "refused", "cut", "failed"]


class RequestRecord(BaseModel):
    """One request; times in seconds."""

    model_config = ConfigDict(frozen=True)

    scenario: str = Field(description="The user's kind.")
    start: float = Field(description="When it was sent, in seconds since 1970.")
    outcome: Outcome = Field(description="Answered to its end; refused (429, 503, 504); cut off before its end mark; or failed.")
    status: int = Field(default=0, description="HTTP status; 0: no answer came.")
    error: str = Field(default="", description="What the server said was wrong.")
    retry_after_s: float | None = Field(default=None, description="When a refused client may come back, as the server says.")
    sent_again: int = Field(default=0, description="How often the client sent it again after a broken connection, as the vendors' SDKs do.")
    ttft_s: float | None = Field(default=None, description="Until the first token's text.")
    latency_s: float = Field(default=0.0, description="Until the end.")
    longest_stall_s: float = Field(default=0.0, description="Longest time in which nothing came.")
    inter_chunk_s: float | None = Field(default=None, description="Mean time between chunks with text; a chunk is no token.")
    chunks: int = Field(default=0, description="Chunks with text; under speculation one may carry several tokens.")
    prompt_tokens: int = Field(default=0, description="Of the usage the server told.")
    completion_tokens: int = Field(default=0, description="Of the usage the server told.")
    prompt: str = Field(default="", description="Digest of what was asked.")
    text: str = Field(default="", description="Digest of what was answered.")

    @property
    def tpot_s(self) -> float | None:
        """Time per output token after the first, from the usage total; chunks do not count tokens."""
        if self.ttft_s is None or self.completion_tokens < 2:
            return None
        return (self.latency_s - self.ttft_s) / (self.completion_tokens - 1)


def digest(text: str) -> str:
    """A short name for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Stream:
    """Reads server-sent events from bytes as they come, however they are cut."""

    def __init__(self, clock: Callable[[], float], start: float) -> None:
        self._clock, self._start, self._last = clock, start, start
        self._buffer = b""
        self.ended = False
        self.error = ""
        self.texts: list[str] = []
        self.usage: dict[str, int] = {}
        self.ttft_s: float | None = None
        self.chunks = 0
        self.longest_stall_s = 0.0
        self._last_text = start

    @property
    def inter_chunk_s(self) -> float | None:
        """Mean time between chunks with text."""
        if self.ttft_s is None or self.chunks < 2:
            return None
        return (self._last_text - self._start - self.ttft_s) / (self.chunks - 1)

    def read_whole(self, body: bytes) -> None:
        """Read an answer that came at once: its first token is as old as its last."""
        self._event(body, self._clock())
        self.ended = bool(self.texts)

    def read(self, chunks: Iterable[bytes]) -> None:
        """Read to the end."""
        for chunk in chunks:
            now = self._clock()
            self.longest_stall_s = max(self.longest_stall_s, now - self._last)
            self._last = now
            self._buffer += chunk
            *events, self._buffer = self._buffer.split(b"\n\n")
            for event in events:
                self._event(event.removeprefix(b"data: ").strip(), now)

    def _event(self, data: bytes, now: float) -> None:
        if data == b"[DONE]":
            self.ended = True
            return
        if not data.startswith(b"{"):
            return
        event: dict[str, Any] = json.loads(data)
        if "error" in event:
            self.error = str(event["error"].get("message", event["error"]))
        self.usage = event.get("usage") or self.usage
        for choice in event.get("choices", []):
            text = choice.get("text") or (choice.get("delta") or choice.get("message") or {}).get("content") or ""
            if text:
                self.ttft_s = now - self._start if self.ttft_s is None else self.ttft_s
                self.chunks += 1
                self._last_text = now
                self.texts.append(text)
