"""An engine's figures: requests running and waiting, KV-cache use, draft tokens accepted."""

from pydantic import BaseModel, ConfigDict, Field


class Acceptance(BaseModel):
    """Draft tokens proposed and accepted, counted since the engine started."""

    model_config = ConfigDict(frozen=True)

    drafts: int = Field(default=0, description="Verification passes that had draft tokens.")
    draft_tokens: int = Field(default=0, description="Draft tokens proposed.")
    accepted: tuple[int, ...] = Field(default=(), description="Draft tokens accepted, by position.")

    @property
    def length(self) -> float:
        """Acceptance length: tokens a verification pass yields on average, the bonus token included."""
        return 1 + sum(self.accepted) / self.drafts if self.drafts else 1.0

    @property
    def rates(self) -> list[float]:
        """Share of passes in which each draft position was accepted."""
        return [count / self.drafts for count in self.accepted] if self.drafts else []

    def since(self, earlier: "Acceptance") -> "Acceptance":
        """What was counted after ``earlier``."""
        before = earlier.accepted or (0,) * len(self.accepted)
        return Acceptance(
            drafts=self.drafts - earlier.drafts,
            draft_tokens=self.draft_tokens - earlier.draft_tokens,
            accepted=tuple(now - then for now, then in zip(self.accepted, before, strict=True)),
        )


class EngineFigures(BaseModel):
    """One engine at one moment."""

    model_config = ConfigDict(frozen=True)

    running: int = Field(default=0, description="Requests being decoded.")
    waiting: int = Field(default=0, description="Requests waiting in the engine.")
    kv_cache_usage: float = Field(default=0.0, description="Share of the KV cache in use, 0 to 1.")
    acceptance: Acceptance = Field(default=Acceptance(), description="Speculation since the engine started.")
