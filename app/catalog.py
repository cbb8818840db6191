"""The catalog: one YAML card a model, and how a card becomes an endpoint spec."""

import json
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, field_validator

from deployments.spec import EndpointSpec, Limits, Replicas
from deployments.speculation import Eagle3, NoSpeculation, PEagle, Speculation, parse_speculative_config
from drafter.target import target_folder

CARDS = Path(__file__).parent / "cards"
REPOSITORY = Path(__file__).parent.parent
Method = Literal["p_eagle", "eagle3", "none"]


class CatalogError(ValueError):
    """A model or option the catalog cannot deploy; the message says what would do."""


class Shape(BaseModel):
    """A model's sizes, as its ``config.json`` has them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    layers: int = Field(ge=1, description="Layers.")
    attention_heads: int = Field(ge=1, description="Query heads of a layer.")
    kv_heads: int = Field(ge=1, description="Key and value heads of a layer.")
    head_dim: int = Field(ge=1, description="Numbers of one head.")
    hidden_size: int = Field(ge=1, description="Width of the residual stream.")
    vocabulary: int = Field(ge=1, description="Tokens there are.")
    sliding_layers: int = Field(default=0, ge=0, description="Layers that attend to a window alone.")
    window: int = Field(default=0, ge=0, description="Tokens of that window.")


class ModelCard(BaseModel):
    """One model of the catalog."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(description="Name in the catalog.")
    title: str = Field(description="Name for people.")
    target: str = Field(description="Hub id of the target.")
    prepared: bool = Field(default=False, description="Whether this repository fetches and converts the target itself.")
    license: str = Field(description="License of the target.")
    parameters_billion: float = Field(gt=0, description="Parameters, in billions.")
    weights_gib: float = Field(gt=0, description="Memory of the weights as served, GiB.")
    hardware: Literal["cpu", "gpu"] = Field(description="What it runs on.")
    minimum_gpus: int = Field(ge=0, description="GPUs one replica needs at least.")
    gpu_memory_gib: int | None = Field(default=None, description="Memory each of those GPUs needs, GiB.")
    shape: Shape | None = Field(default=None, description="Its sizes, where its config.json is not here.")
    heads: dict[Literal["p_eagle", "eagle3"], str] = Field(default_factory=dict, description="Draft heads: a hub id, or a folder of this repository.")
    num_speculative_tokens: int = Field(ge=1, description="Default K.")
    max_num_seqs: int = Field(ge=1, description="Requests one replica decodes at once.")
    max_model_len: int | None = Field(default=None, description="Context in tokens; empty: the target's own.")
    engine: dict[str, Any] = Field(default_factory=dict, description="Further vLLM engine arguments.")
    notes: tuple[str, ...] = Field(default=(), description="What an operator should know.")

    @property
    def target_location(self) -> str:
        """What the engine loads: the hub id, or the folder the target is converted into."""
        return str(target_folder()) if self.prepared else self.target

    def head(self, method: Literal["p_eagle", "eagle3"]) -> str:
        """The head for ``method``: a hub id or an absolute folder.

        Raises:
            CatalogError: the card has none.
        """
        if (head := self.heads.get(method)) is None:
            raise CatalogError(f"{self.name} has no public {method} head: give one with head=FOLDER, or use speculation=none")
        local = REPOSITORY / head
        return str(local) if local.is_dir() else head

    def speculation(self, method: Method, k: int | None = None, head: str | None = None) -> Speculation:
        """The speculation ``method`` with the card's head and K, unless others are given."""
        if method == "none":
            if k is not None or head is not None:
                raise CatalogError("speculation=none drafts nothing: leave out the head and num_speculative_tokens")
            return NoSpeculation()
        kind = PEagle if method == "p_eagle" else Eagle3
        return kind(head=head or self.head(method), num_speculative_tokens=self.num_speculative_tokens if k is None else k)

    def environment_preset(self) -> dict[str, str]:
        """What SageMaker's console would show for this card."""
        preset = {"SM_VLLM_MODEL": self.target, "SM_VLLM_MAX_NUM_SEQS": str(self.max_num_seqs)}
        if self.max_model_len:
            preset["SM_VLLM_MAX_MODEL_LEN"] = str(self.max_model_len)
        preset |= {f"SM_VLLM_{key.upper()}": json.dumps(value) if isinstance(value, bool) else str(value) for key, value in self.engine.items()}
        if head := self.heads.get("p_eagle"):
            config = {"model": head, "method": "eagle3", "num_speculative_tokens": self.num_speculative_tokens, "parallel_drafting": True}
            preset["SM_VLLM_SPECULATIVE_CONFIG"] = json.dumps(config)
        return preset


class DeployRequest(BaseModel):
    """A model of the catalog and the choices a user makes: the arguments of ``serve run``, a YAML entry, or ``peagle deploy``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(description="Name in the catalog.")
    name: str | None = Field(default=None, description="Name of the endpoint; empty: the model's.")
    speculation: Method = Field(default="p_eagle", description="How tokens are drafted.")
    num_speculative_tokens: int | None = Field(default=None, description="K; empty: the card's.")
    head: str | None = Field(default=None, description="Another head's folder or hub id.")
    speculative_config: dict[str, Any] | None = Field(
        default=None, description="vLLM's JSON, as SM_VLLM_SPECULATIVE_CONFIG has it; instead of speculation, head and num_speculative_tokens."
    )
    parallel_drafting_spec: dict[str, Any] | None = Field(default=None, description="Candidate branches (num_branches) and their depth.")
    tensor_parallel_size: int | None = Field(default=None, ge=1, description="GPUs a replica; empty: the card's minimum.")
    accelerator: str | None = Field(default=None, description="Ray accelerator type, such as H100; empty: any.")
    max_num_seqs: int | None = Field(default=None, ge=1, description="Requests a replica decodes at once; empty: the card's.")
    max_model_len: int | None = Field(default=None, ge=16, description="Context in tokens; empty: the card's.")
    min_replicas: int = Field(default=1, ge=0, description="Replicas kept when idle; 0: the next request waits while one starts.")
    max_replicas: int = Field(default=1, ge=1, description="Replicas at most.")
    target_ongoing_requests: float | None = Field(default=None, gt=0, description="Requests a replica should have; empty: all it decodes at once.")
    up_after_s: float = Field(default=5.0, ge=0, description="How long more replicas must have been wanted before they start.")
    down_after_s: float = Field(default=300.0, ge=0, description="How long fewer must have been wanted before one stops.")
    limits: Limits = Field(default=Limits(), description="Time and queue limits.")
    on_head_failure: Literal["fail", "fallback"] = Field(
        default="fail", description="What a head that does not load leads to: a failed endpoint, or one that serves without it."
    )

    @field_validator("speculative_config", "parallel_drafting_spec", mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if not isinstance(value, str):  # `serve run` passes every argument as text
            return value
        try:
            return json.loads(value)
        except ValueError as error:
            raise ValueError(f"not JSON: {error}") from None

    def _speculation(self, card: ModelCard) -> Speculation:
        if self.speculative_config is None and self.parallel_drafting_spec is None:
            return card.speculation(self.speculation, self.num_speculative_tokens, self.head)
        if self.speculative_config is not None and (self.head or self.num_speculative_tokens or self.speculation != "p_eagle"):
            raise CatalogError("speculative_config says it all: leave out speculation, head and num_speculative_tokens")
        if self.speculation != "p_eagle":
            raise CatalogError(f"parallel_drafting_spec is P-EAGLE's: leave it out with speculation={self.speculation}")
        config = dict(self.speculative_config or {"parallel_drafting": True, "num_speculative_tokens": self.num_speculative_tokens})
        if not config.get("model"):
            parallel = config.get("parallel_drafting") or self.parallel_drafting_spec or "parallel_drafting_spec" in config
            config["model"] = self.head or card.head("p_eagle" if parallel else "eagle3")
        return parse_speculative_config(config, self.parallel_drafting_spec)

    def to_spec(self) -> EndpointSpec:
        """The endpoint spec.

        Raises:
            CatalogError: the model is not in the catalog, or has no such head.
            SpeculationError: the speculative configuration is one vLLM would refuse.
            pydantic.ValidationError: a value is out of range.
        """
        card = get_card(self.model)
        return EndpointSpec(
            name=self.name or card.name,
            model=card.target_location,
            speculation=self._speculation(card),
            hardware=card.hardware,
            accelerator=self.accelerator,
            tensor_parallel_size=self.tensor_parallel_size or max(1, card.minimum_gpus),
            max_num_seqs=self.max_num_seqs or card.max_num_seqs,
            max_model_len=self.max_model_len or card.max_model_len,
            engine=card.engine,
            replicas=Replicas(
                minimum=self.min_replicas,
                maximum=max(self.min_replicas, self.max_replicas),
                target_ongoing_requests=self.target_ongoing_requests,
                up_after_s=self.up_after_s,
                down_after_s=self.down_after_s,
            ),
            limits=self.limits,
            on_head_failure=self.on_head_failure,
        )


@cache
def load_cards() -> dict[str, ModelCard]:
    """Every card, by name."""
    cards = [ModelCard.model_validate(yaml.safe_load(path.read_text())) for path in sorted(CARDS.glob("*.yaml"))]
    return {card.name: card for card in cards}


def get_card(name: str) -> ModelCard:
    """The card called ``name``.

    Raises:
        CatalogError: there is none.
    """
    cards = load_cards()
    if name not in cards:
        raise CatalogError(f"model {name!r} is not in the catalog; it has {', '.join(cards)}")
    return cards[name]
