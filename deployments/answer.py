"""How an answer travels from a worker to the gateway: its start first, then its text."""

from pydantic import BaseModel, ConfigDict, Field


class AnswerStart(BaseModel):
    """The first item of every answer, sent before any text."""

    model_config = ConfigDict(frozen=True)

    status: int = Field(description="The HTTP status the response will have.")
    streaming: bool = Field(description="Whether server-sent events follow, or one JSON document.")
