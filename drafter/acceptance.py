"""What draft tokens were worth: proposed and accepted, by position."""

from itertools import zip_longest

from pydantic import BaseModel, ConfigDict, Field


class Acceptance(BaseModel):
    """Draft tokens proposed and accepted over some stretch of decoding."""

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

    def __add__(self, other: "Acceptance") -> "Acceptance":
        """Both stretches together."""
        return Acceptance(
            drafts=self.drafts + other.drafts,
            draft_tokens=self.draft_tokens + other.draft_tokens,
            accepted=tuple(a + b for a, b in zip_longest(self.accepted, other.accepted, fillvalue=0)),
        )
