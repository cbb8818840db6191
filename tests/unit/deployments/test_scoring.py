"""Where a request goes, as an operator would expect it."""

import pytest

from deployments.pace import Pace, StepTimes
from deployments.scoring import BLOCK, Prefixes, ReplicaLoad, blocks, cost, preference, seconds_to_start
from deployments.work import Demand, Work, demand

PACE = Pace(step_s=0.1, request_s=0.01, prefill_s=0.001, tokens=1.5)
ASKED = Demand(prompt=100, answer=50)


def load(**further):
    return ReplicaLoad(slots=4, pace=PACE, expected_answer=50, **further)


@pytest.mark.parametrize(
    "worse",
    [
        load(running=3, decode_tokens=90),
        load(prefill_tokens=2000, waiting=1),
        load(running=4, waiting=2, decode_tokens=300),
        load(running=2, decode_tokens=400, kv_cache_usage=0.99),
        load(running=1, stalled_s=8),
    ],
)
def test_an_idle_replica_is_better_than_a_loaded_one(worse):
    assert cost(load(), ASKED) < cost(worse, ASKED)


def test_four_long_answers_weigh_more_than_four_short_ones_when_all_slots_are_taken():
    assert seconds_to_start(load(running=4, decode_tokens=40), ASKED) < seconds_to_start(load(running=4, decode_tokens=4000), ASKED)


def test_a_prefix_is_worth_its_prefill_and_no_more():
    long = Demand(prompt=2000, answer=10)
    assert cost(load(running=1, decode_tokens=10), long, held=1.0) < cost(load(), long)
    assert cost(load(running=4, waiting=8, decode_tokens=2000), long, held=1.0) > cost(load(), long)


def test_requests_sent_since_the_report_count():
    assert load().plus([ASKED] * 6) == load(running=4, waiting=2, prefill_tokens=600, decode_tokens=300)


def test_conversations_are_known_by_their_beginning():
    first, other = "a" * 3 * BLOCK, "a" * BLOCK + "b" * 2 * BLOCK
    prefixes = Prefixes(capacity=4)
    prefixes.remember(blocks(first))
    assert prefixes.held(blocks(first + "more" * BLOCK)) == 3
    assert prefixes.held(blocks(other)) == 1
    prefixes.remember(blocks("c" * 4 * BLOCK))
    assert prefixes.held(blocks(first)) == 0  # forgotten


def test_routers_agree_without_talking_and_spread_conversations():
    chosen = {min("ABC", key=lambda replica: preference(blocks(f"{number:0>256}"), replica)) for number in range(50)}
    assert chosen == {"A", "B", "C"}


def test_the_pace_is_learned_from_steps():
    times = StepTimes()
    for number in range(200):
        running, prompt = 1 + number % 8, 300 * (number % 5 == 0)
        times.add(0.1 + 0.02 * running + 0.001 * prompt, running, prompt, 2 * running)
    pace = times.pace()
    assert pace.step_s == pytest.approx(0.1, rel=0.05)
    assert pace.request_s == pytest.approx(0.02, rel=0.05)
    assert pace.prefill_s == pytest.approx(0.001, rel=0.05)
    assert pace.tokens == pytest.approx(2)


def test_what_a_replica_holds_counts_down():
    work = Work()
    with work.held(demand({"prompt": "x" * 400, "max_tokens": 50})) as number:
        assert (work.prefill_tokens, work.decode_tokens, work.ongoing) == (100, 50, 1)
        work.wrote(number, 20)
        assert (work.prefill_tokens, work.decode_tokens) == (0, 30)
    assert (work.ongoing, work.decode_tokens, work.finished) == (0, 0, 1)
