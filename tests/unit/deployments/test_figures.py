"""An endpoint's figures from those of its engines."""

from deployments.figures import EngineFigures, together
from deployments.pace import Pace
from drafter.acceptance import Acceptance


def test_counts_are_added_and_shares_averaged():
    one = EngineFigures(running=2, waiting=1, kv_cache_usage=0.2, answer_tokens=10, acceptance=Acceptance(drafts=4, draft_tokens=16, accepted=(3, 1)))
    two = EngineFigures(running=1, kv_cache_usage=0.4, answer_tokens=5, head_failure="no head", pace=Pace(step_s=0.15))
    both = together([one, two])
    assert (both.replicas, both.running, both.waiting, both.answer_tokens) == (2, 3, 1, 15)
    assert (round(both.kv_cache_usage, 6), round(both.pace.step_s, 6)) == (0.3, 0.1)
    assert both.acceptance == one.acceptance
    assert both.head_failure == "no head"


def test_an_endpoint_without_replicas_has_figures_too():
    assert together([]).replicas == 0
