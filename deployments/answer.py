"""How an answer travels from a worker to the gateway: taken on, then its start, then its text, piece by piece."""

from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field


class Origin(BaseModel):
    """What another replica must know of a stream's beginning to go on with it."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(description="The answer's id, in each of its events.")
    created: int = Field(description="When it began, in seconds since 1970.")
    prompt: tuple[int, ...] = Field(description="Token ids of the prompt, chat template included.")


class Taken(BaseModel):
    """The first item of every answer: the request has left the queue, a replica has it."""

    model_config = ConfigDict(frozen=True)


class AnswerStart(BaseModel):
    """The second item, sent before any text."""

    model_config = ConfigDict(frozen=True)

    status: int = Field(description="The HTTP status the response will have.")
    streaming: bool = Field(description="Whether server-sent events follow, or one JSON document.")
    origin: Origin | None = Field(default=None, description="Of a stream that another replica could go on with.")


class Piece(NamedTuple):
    """What follows: text for the client, and the tokens it carries where the stream could go on elsewhere."""

    text: str
    tokens: tuple[int, ...] = ()
    delta: str = ""
    finished: bool = False


class Progress(BaseModel):
    """How far a stream had come when its replica died."""

    model_config = ConfigDict(frozen=True)

    origin: Origin = Field(description="How it began.")
    tokens: tuple[int, ...] = Field(description="Token ids sent so far.")
    text: str = Field(description="Their text, as the client has read it.")
