"""Speculative decoding as configuration: what is drafted, by which head, how far, and how vLLM is told."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter


class SpeculationError(ValueError):
    """A speculation configuration is not one vLLM can run; the message names the field and what would do."""


class _Drafting(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    head: str = Field(min_length=1, description="Folder or hub id of the draft head.")
    num_speculative_tokens: int = Field(default=4, ge=1, le=16, description="K: draft tokens proposed a step.")
    draft_tensor_parallel_size: int | None = Field(default=None, ge=1, description="GPUs the head is sharded over; empty: as many as the target's.")

    def _vllm(self, tensor_parallel_size: int) -> dict[str, Any]:
        return {
            "model": self.head,
            "method": "eagle3",
            "num_speculative_tokens": self.num_speculative_tokens,
            "draft_tensor_parallel_size": self.draft_tensor_parallel_size or tensor_parallel_size,
        }


class PEagle(_Drafting):
    """P-EAGLE: one drafting pass proposes all K tokens."""

    kind: Literal["p_eagle"] = "p_eagle"

    def to_vllm(self, tensor_parallel_size: int = 1) -> dict[str, Any]:
        """vLLM's ``speculative_config``."""
        return {**self._vllm(tensor_parallel_size), "parallel_drafting": True}


class Eagle3(_Drafting):
    """EAGLE-3: K drafting passes, one token each."""

    kind: Literal["eagle3"] = "eagle3"

    def to_vllm(self, tensor_parallel_size: int = 1) -> dict[str, Any]:
        """vLLM's ``speculative_config``."""
        return self._vllm(tensor_parallel_size)


class NoSpeculation(BaseModel):
    """Plain decoding: the target writes every token itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["none"] = "none"

    @property
    def num_speculative_tokens(self) -> int:
        """K is 0."""
        return 0

    def to_vllm(self, tensor_parallel_size: int = 1) -> None:
        """Nothing for vLLM to know."""


Speculation = Annotated[PEagle | Eagle3 | NoSpeculation, Field(discriminator="kind")]
speculation_adapter: TypeAdapter[PEagle | Eagle3 | NoSpeculation] = TypeAdapter(Speculation)

_VLLM_KEYS = {"model", "method", "num_speculative_tokens", "parallel_drafting", "draft_tensor_parallel_size", "parallel_drafting_spec"}


def parse_speculative_config(config: dict[str, Any], drafting_spec: dict[str, Any] | None = None) -> PEagle | Eagle3:
    """Read vLLM's ``speculative_config`` JSON, as SageMaker passes it in ``SM_VLLM_SPECULATIVE_CONFIG``.

    ``drafting_spec`` is a ``parallel_drafting_spec`` block (``num_branches``, ``depth``); it may also stand inside ``config``.

    Raises:
        SpeculationError: a key is unknown, missing, or asks for what vLLM 0.29 refuses.
    """
    if unknown := sorted(set(config) - _VLLM_KEYS):
        raise SpeculationError(f"speculative_config.{unknown[0]} is not known; use {', '.join(sorted(_VLLM_KEYS))}")
    if config.get("method", "eagle3") != "eagle3":
        raise SpeculationError(f"speculative_config.method {config['method']!r} is not served here; use 'eagle3'")
    if not config.get("model"):
        raise SpeculationError("speculative_config.model is missing: give the head's folder or hub id")
    drafting = drafting_spec or config.get("parallel_drafting_spec")
    parallel = bool(config.get("parallel_drafting", drafting is not None))
    k = config.get("num_speculative_tokens")
    if drafting is not None:
        depth = _depth(drafting)
        if not parallel:
            raise SpeculationError("parallel_drafting_spec needs parallel_drafting: true")
        if k not in (None, depth):
            raise SpeculationError(f"num_speculative_tokens {k} and parallel_drafting_spec.depth {depth} differ; give one of them")
        k = depth
    if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= 16:
        raise SpeculationError(f"speculative_config.num_speculative_tokens is {k!r}; give a whole number from 1 to 16")
    kind = PEagle if parallel else Eagle3
    return kind(head=config["model"], num_speculative_tokens=k, draft_tensor_parallel_size=config.get("draft_tensor_parallel_size"))


def _depth(drafting: dict[str, Any]) -> int:
    branches = drafting.get("num_branches", 1)
    if branches != 1:
        raise SpeculationError(
            f"parallel_drafting_spec.num_branches is {branches!r}: candidate trees are not served yet, use 1 (a chain of depth draft tokens)"
        )
    if "depth" not in drafting:
        raise SpeculationError("parallel_drafting_spec.depth is missing: give the number of draft tokens")
    return int(drafting["depth"])
