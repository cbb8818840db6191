"""How fast an engine works, learned from its own steps."""

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

DECAY = 0.99  # a step counts for about the next hundred
RIDGE = 1e-3  # keeps the fit in bounds while every step was alike


class Pace(BaseModel):
    """An engine's speed as a straight line: a step takes ``step_s + request_s x running + prefill_s x prompt tokens``."""

    model_config = ConfigDict(frozen=True)

    step_s: float = Field(default=0.05, ge=0, description="Seconds a step takes before any request counts.")
    request_s: float = Field(default=0.005, ge=0, description="Seconds each running request adds.")
    prefill_s: float = Field(default=0.0005, ge=0, description="Seconds each prompt token adds.")
    tokens: float = Field(default=1.0, gt=0, description="Tokens a request gains in a step, accepted draft tokens included.")

    def token_s(self, running: float) -> float:
        """Seconds until each of ``running`` requests has its next token, on average."""
        return (self.step_s + self.request_s * max(1.0, running)) / self.tokens


class StepTimes:
    """Fits a ``Pace`` to steps as they come: least squares in which old steps fade."""

    def __init__(self) -> None:
        self._products = np.zeros((3, 3))
        self._targets = np.zeros(3)
        self._tokens = self._requests = 0.0

    def add(self, seconds: float, running: int, prompt_tokens: int, tokens: int) -> None:
        """One step.

        Args:
            seconds: how long it took.
            running: requests it was about.
            prompt_tokens: tokens it prefilled.
            tokens: tokens it gave out.
        """
        step = np.array([1.0, running, prompt_tokens])
        self._products = DECAY * self._products + np.outer(step, step)
        self._targets = DECAY * self._targets + seconds * step
        if not prompt_tokens:
            self._tokens = DECAY * self._tokens + tokens
            self._requests = DECAY * self._requests + running

    def pace(self) -> Pace:
        """The pace of the last steps; a default one before the first."""
        if not self._products[0, 0]:
            return Pace()
        step_s, request_s, prefill_s = np.linalg.solve(self._products + RIDGE * np.diag(np.diag(self._products) + 1e-9), self._targets).clip(0)
        gained = self._tokens / self._requests if self._requests and self._tokens else 1.0
        return Pace(step_s=step_s, request_s=request_s, prefill_s=prefill_s, tokens=max(gained, 0.1))
