"""What an experiment asks, and what its figures say."""

import pytest
from pydantic import ValidationError

from drafter.acceptance import Acceptance
from loadtests.bench import prompts, summary
from loadtests.experiment import CellResult, Contender, Experiment, read_experiment
from loadtests.page import page
from loadtests.record import RequestRecord
from loadtests.report import comparison, markdown, mean_of

OURS = Contender(label="ours", deploy={"model": "m", "speculation": "p_eagle", "num_speculative_tokens": 3})


def experiment(**further):
    return Experiment(**{"name": "x", "contenders": [OURS], "concurrency": [1, 4], "dataset": "long-code", **further})


def result(method="p_eagle", k=3, concurrency=1, repetition=0, otps=10.0):
    return CellResult(
        label=f"{method}-{k}", method=method, k=k, concurrency=concurrency, repetition=repetition, requests=4, answered=4, otps=otps, ttft_p50=0.1,
        ttft_p95=0.2, tpot_p50=0.01, latency_p50=1.0, latency_p95=2.0, acceptance_length=1.5, acceptance_rates=[0.4, 0.1],
        machine="m", commit="c", seed=0,
    )  # fmt: skip


def records(count=4):
    return [
        RequestRecord(scenario="s", start=number, outcome="answered", status=200, ttft_s=0.5, latency_s=2.0, completion_tokens=10)
        for number in range(count)
    ]


def test_every_contender_is_asked_the_same_and_every_repetition_something_else():
    first = prompts(experiment(), 4, 0)
    assert first == prompts(experiment(), 4, 0)
    assert first != prompts(experiment(), 4, 1)
    assert len(first) == 16
    assert len(prompts(experiment(requests=2), 8, 0)) == 32  # four for each at a time


def test_a_contender_is_ours_or_a_peer_and_has_a_name_of_its_own():
    with pytest.raises(ValidationError, match="either deploy"):
        Contender(label="neither")
    with pytest.raises(ValidationError, match="two contenders are called ours"):
        experiment(contenders=[OURS, OURS])


def test_the_experiments_that_come_along_are_valid():
    from loadtests.bench import ROOT

    assert {read_experiment(path).name for path in (ROOT / "loadtests" / "experiments").glob("*.yaml")} == {"methods", "overhead"}


def test_throughput_is_all_tokens_over_the_whole_time():
    cell = summary(OURS, 4, 0, 0, records(), Acceptance(drafts=10, draft_tokens=30, accepted=(4, 1, 0)))
    assert cell.otps == pytest.approx(40 / 5)  # the last of four ends five seconds after the first began
    assert (cell.k, cell.acceptance_length) == (3, 1.5)
    with pytest.raises(RuntimeError, match="answered nothing"):
        summary(OURS, 4, 0, 0, [], None)


def test_the_table_has_the_ratios():
    results = [result(), result("eagle3", otps=8.0), result("none", None, otps=5.0)]
    assert "| 1 | 8.0 ± 0.0 | 5.0 ± 0.0 | 10.0 ± 0.0 | 1.25 | 2.00 |" in markdown(results)


def test_a_change_within_the_noise_is_called_noise():
    before = [result(repetition=number, otps=otps) for number, otps in enumerate((10.0, 10.2, 9.8))]
    same, other = ([one.model_copy(update={"otps": one.otps + more}) for one in before] for more in (0.1, 5.0))
    assert "noise" in comparison(before, same)
    assert "| difference |" in comparison(before, other)
    assert mean_of([1.0, 1.0, 1.0]).high == 1.0


def test_the_page_holds_its_plots():
    text = page("x", [result(), result("none", None, otps=5.0), result(concurrency=4), result("none", None, 4)], {"p_eagle-3": records()})
    assert text.count("<img") == 4
    assert "http" not in text.replace("data:image/png;base64", "")[:2000]
