"""An experiment: which endpoints are asked what, how many requests at a time, how often."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

Dataset = Literal["code", "chat", "json", "long-code"]


class Contender(BaseModel):
    """One thing that is measured: an endpoint to deploy, or a peer that speaks OpenAI's API."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: str = Field(pattern=r"^[A-Za-z0-9](-*[A-Za-z0-9])*$", description="Its name in tables, and the endpoint's.")
    method: str = Field(default="", description="What it is compared as, such as p_eagle; empty: its speculation.")
    deploy: dict[str, Any] | None = Field(default=None, description="Fields of POST /v1/endpoints.")
    command: list[str] | None = Field(default=None, description="A peer's command; it is started and stopped by the harness.")
    url: str | None = Field(default=None, description="Where a peer listens.")
    model: str | None = Field(default=None, description="`model` in a peer's requests; empty: the label.")

    @model_validator(mode="after")
    def _one_kind(self) -> "Contender":
        if (self.deploy is None) == (self.url is None):
            raise ValueError(f"{self.label}: give either deploy (an endpoint of ours) or url (a peer)")
        return self

    @property
    def compared_as(self) -> str:
        """The method its figures stand under."""
        return self.method or (self.deploy or {}).get("speculation", "p_eagle")

    @property
    def k(self) -> int | None:
        """Draft tokens a step, where the experiment says it."""
        return (self.deploy or {}).get("num_speculative_tokens")


def cell_name(label: str, dataset: str, category: str, load: float, repetition: int) -> str:
    """The name of one cell's files."""
    return "-".join(filter(None, (label, dataset, category.replace("/", "-"), f"{load:g}", str(repetition))))


class Slo(BaseModel):
    """A service-level objective: what a request must meet to count as good."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ttft_s: float = Field(gt=0, description="Seconds to the first token.")
    tpot_s: float = Field(gt=0, description="Seconds per output token after it.")


class Experiment(BaseModel):
    """A matrix: contenders x load x repetitions, over one data set."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(description="Name, and the results' folder.")
    contenders: list[Contender] = Field(min_length=1, description="What is measured.")
    datasets: list[Dataset | Path] = Field(
        default=["code"], min_length=1, description="Known data sets, or files (JSONL, Parquet) with `prompt` or `turns` in each row; a table each."
    )
    categories: list[str] = Field(default=[], description="Measured apart: values of the rows' `category`, as SPEED-Bench has eleven.")
    concurrency: list[int] = Field(default=[], description="Requests at a time: the next is sent when one is answered (closed loop).")
    rates: list[float] = Field(default=[], description="Instead: requests a second, Poisson, whether or not they are answered (open loop).")
    slo: Slo | None = Field(default=None, description="What a request must meet to count as good.")
    requests: int = Field(default=16, ge=1, description="Requests a cell, or four for each of those at a time if that is more.")
    max_tokens: int = Field(default=128, ge=1, description="Tokens of an answer at most.")
    repetitions: int = Field(default=3, ge=1, description="How often each cell is measured; the contenders take turns.")
    together: int = Field(default=3, ge=1, description="Contenders deployed at the same time.")
    seed: int = Field(default=0, description="Which prompts are drawn.")
    watch_s: float | None = Field(default=None, gt=0, description="Look at what the stack's processes hold so often, in seconds.")

    @property
    def loads(self) -> Sequence[float]:
        """Concurrencies, or rates."""
        return self.rates or self.concurrency

    @model_validator(mode="after")
    def _one_load(self) -> "Experiment":
        if bool(self.concurrency) == bool(self.rates):
            raise ValueError("give either concurrency (closed loop) or rates (open loop)")
        return self

    @model_validator(mode="after")
    def _labels_differ(self) -> "Experiment":
        labels = [one.label for one in self.contenders]
        if twice := next((label for label in labels if labels.count(label) > 1), None):
            raise ValueError(f"two contenders are called {twice}")
        return self

    def groups(self) -> list[list[Contender]]:
        """Contenders that are deployed at the same time."""
        return [self.contenders[start : start + self.together] for start in range(0, len(self.contenders), self.together)]


class CellResult(BaseModel):
    """One contender under one load, once; times in seconds."""

    model_config = ConfigDict(frozen=True)

    label: str = Field(description="The contender.")
    method: str = Field(description="What it is compared as.")
    k: int | None = Field(description="Draft tokens a step.")
    dataset: str = Field(description="What was asked: a known data set, or a file's name.")
    category: str = Field(default="", description="Of the prompts, where these are measured apart.")
    concurrency: int = Field(description="Requests at a time; 0: an open loop.")
    rate: float | None = Field(default=None, description="Requests a second, in an open loop.")
    slo: Slo | None = Field(default=None, description="What a request had to meet to count as good.")
    goodput: float | None = Field(default=None, description="Good requests a second.")
    repetition: int = Field(description="Which time.")
    requests: int = Field(description="Requests sent.")
    answered: int = Field(description="Answered to their end.")
    otps: float = Field(description="Output tokens a second, all requests together.")
    ttft_p50: float = Field(description="Time to first token.")
    ttft_p95: float = Field(description="Time to first token, 95th percentile.")
    tpot_p50: float = Field(description="Time per output token after the first.")
    latency_p50: float = Field(description="Time to the last token.")
    latency_p95: float = Field(description="Time to the last token, 95th percentile.")
    acceptance_length: float | None = Field(default=None, description="Tokens a verification pass yielded, by the server's own counters.")
    acceptance_rates: list[float] = Field(default_factory=list, description="Share of passes in which each position was accepted.")
    machine: str = Field(description="What it ran on.")
    versions: dict[str, str] = Field(description="Of the packages that matter.")
    commit: str = Field(description="Commit of this repository.")
    seed: int = Field(description="Which prompts were drawn.")

    @property
    def name(self) -> str:
        """Of its files."""
        return cell_name(self.label, self.dataset, self.category, self.load, self.repetition)

    @property
    def load(self) -> float:
        """Requests at a time, or a second."""
        return self.concurrency if self.rate is None else self.rate


def read_experiment(path: Path) -> Experiment:
    """The experiment in a YAML file.

    Raises:
        pydantic.ValidationError: a field is unknown or its value cannot be.
    """
    return Experiment.model_validate(yaml.safe_load(path.read_text()))


def read_results(folder: Path) -> list[CellResult]:
    """What was measured so far."""
    path = folder / "results.jsonl"
    return [CellResult.model_validate_json(line) for line in path.read_text().splitlines()] if path.exists() else []
