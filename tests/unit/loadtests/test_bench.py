"""What an experiment asks, and what its figures say."""

import json

import pyarrow
import pytest
from pyarrow import parquet
from pydantic import ValidationError

from drafter.acceptance import Acceptance
from loadtests.bench import Cell, prompts, summary
from loadtests.datasets import read_prompts
from loadtests.experiment import CellResult, Contender, Experiment, read_experiment
from loadtests.page import page
from loadtests.record import RequestRecord
from loadtests.report import by_dataset, capacity, comparison, markdown, mean_of, paired

OURS = Contender(label="ours", deploy={"model": "m", "speculation": "p_eagle", "num_speculative_tokens": 3})


def experiment(**further):
    load = {} if "rates" in further else {"concurrency": [1, 4]}
    return Experiment(**{"name": "x", "contenders": [OURS], "datasets": ["long-code"], **load, **further})


def result(method="p_eagle", k=3, concurrency=1, repetition=0, otps=10.0, **further):
    return CellResult(
        label=f"{method}-{k}", method=method, k=k, concurrency=concurrency, repetition=repetition, requests=4, answered=4, otps=otps,
        ttft_p95=0.2, tpot_p50=0.01, latency_p50=1.0, latency_p95=2.0, acceptance_length=1.5, acceptance_rates=[0.4, 0.1],
        machine="m", versions={"ray": "2"}, commit="c", seed=0, **{"dataset": "code", "ttft_p50": 0.1, **further},
    )  # fmt: skip


def cell(load, repetition):
    return Cell(OURS, "long-code", load, repetition)


def records(count=4):
    return [
        RequestRecord(scenario="s", start=number, outcome="answered", status=200, ttft_s=0.5, latency_s=2.0, completion_tokens=10)
        for number in range(count)
    ]


def test_every_contender_is_asked_the_same_and_every_repetition_something_else():
    other = Contender(label="other", url="http://127.0.0.1:1")
    first = prompts(experiment(), cell(4, 0))
    assert first == prompts(experiment(), cell(4, 0)._replace(contender=other))
    assert first != prompts(experiment(), cell(4, 1))
    assert len(first) == 16
    assert len(prompts(experiment(requests=2), cell(8, 0))) == 32  # four for each at a time
    assert len(prompts(experiment(rates=[2.0], requests=2880), cell(2, -1))) == 8  # an hour's load is not warmed up for an hour


def test_a_contender_is_ours_or_a_peer_and_has_a_name_of_its_own():
    with pytest.raises(ValidationError, match="either deploy"):
        Contender(label="neither")
    with pytest.raises(ValidationError, match="two contenders are called ours"):
        experiment(contenders=[OURS, OURS])


def test_the_experiments_that_come_along_are_valid():
    from loadtests.bench import ROOT

    names = {read_experiment(path).name for path in (ROOT / "loadtests" / "experiments").glob("*.yaml")}
    assert names == {"capacity", "methods", "methods-gpu", "overhead", "soak"}


def test_throughput_is_all_tokens_over_the_whole_time():
    found = summary(experiment(), cell(4, 0), records(), Acceptance(drafts=10, draft_tokens=30, accepted=(4, 1, 0)))
    assert found.otps == pytest.approx(40 / 5)  # the last of four ends five seconds after the first began
    assert (found.k, found.acceptance_length, found.dataset) == (3, 1.5, "long-code")
    assert found.versions["ray"]
    with pytest.raises(RuntimeError, match="answered nothing"):
        summary(experiment(), cell(4, 0), [], None)


def test_goodput_counts_the_requests_that_met_the_objective():
    open_loop = experiment(rates=[0.5], slo={"ttft_s": 1.0, "tpot_s": 0.2})
    slow = [record.model_copy(update={"ttft_s": 1.5}) for record in records(2)]
    found = summary(open_loop, cell(0.5, 0), [*records(2), *slow], None)
    assert found.goodput == pytest.approx(2 / 3)  # the last ends three seconds after the first began
    assert (found.load, found.rate, found.concurrency) == (0.5, 0.5, 0)
    with pytest.raises(ValidationError, match="either concurrency"):
        experiment(concurrency=[1], rates=[0.5])


def test_capacity_is_the_last_rate_before_the_first_that_breaks_the_objective():
    slo = {"ttft_s": 1.0, "tpot_s": 1.0}
    cells = [
        result(concurrency=0, rate=rate, slo=slo).model_copy(update={"ttft_p95": late}) for rate, late in ((1, 0.2), (2, 0.9), (3, 1.4), (4, 0.5))
    ]
    assert "| P-EAGLE K=3 | 2 | 10.0 | 900 | 3 |" in capacity(cells)
    never = [cell.model_copy(update={"ttft_p95": 2.0}) for cell in cells]
    assert "| P-EAGLE K=3 | - | - | - | 1 |" in capacity(never)


def test_the_table_has_the_ratios():
    results = [result(), result("eagle3", otps=8.0), result("none", None, otps=5.0)]
    assert "| 1 | 8.0 | 5.0 | 10.0 | 1.25 | 2.00 |" in markdown(results)


def test_contenders_are_paired_by_repetition():
    noisy = [(10.0, 0.1), (20.0, 0.2), (30.0, 0.3)]
    results = [result("none", None, repetition=at, otps=otps, ttft_p50=ttft) for at, (otps, ttft) in enumerate(noisy)]
    results += [result(repetition=at, otps=4 / 3 * otps, ttft_p50=ttft + 0.01) for at, (otps, ttft) in enumerate(noisy)]
    assert paired(results).splitlines()[2:] == ["| P-EAGLE K=3 | 1 | 133.3 ± 0.0 | +10 ± 0 |"]
    assert paired(results[:3]) == ""


def test_data_sets_are_told_apart():
    apart = by_dataset([result(), result(dataset="chat", otps=5.0), result(repetition=1)])
    assert {name: [one.otps for one in these] for name, these in apart.items()} == {"code": [10.0, 10.0], "chat": [5.0]}
    assert result().name != result(dataset="chat").name


def test_a_change_within_the_noise_is_called_noise():
    before = [result(repetition=number, otps=otps) for number, otps in enumerate((10.0, 10.2, 9.8))]
    same, other = ([one.model_copy(update={"otps": one.otps + more}) for one in before] for more in (0.1, 5.0))
    assert "noise" in comparison(before, same)
    assert "| difference |" in comparison(before, other)
    assert mean_of([1.0, 1.0, 1.0]).high == 1.0
    assert "noise" in comparison(before[:1], other[:1])  # one repetition tells nothing of the next


def test_the_page_holds_its_plots():
    text = page("x", [result(), result("none", None, otps=5.0), result(concurrency=4), result("none", None, 4)], {"p_eagle-3": records()})
    assert text.count("<img") == 4
    assert "http" not in text.replace("data:image/png;base64", "")[:2000]


def test_files_are_read_as_spec_bench_and_speed_bench_lay_them_out(tmp_path):
    rows = [
        {"question_id": "1", "category": "coding", "sub_category": "python", "turns": ["first", "then"], "multiturn": True},
        {"question_id": "2", "category": "math", "turns": ["sum"], "multiturn": False},
    ]
    lines, table = tmp_path / "questions.jsonl", tmp_path / "test.parquet"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    parquet.write_table(pyarrow.Table.from_pylist(rows), table)
    for path in (lines, table):
        assert read_prompts(path) == ["first", "sum"]
        assert read_prompts(path, "math") == ["sum"]
        with pytest.raises(ValueError, match="no rows of category 'roleplay'; it has coding, math"):
            read_prompts(path, "roleplay")
    lines.write_text('{"text": "?"}\n')
    with pytest.raises(ValueError, match="row 1: neither prompt nor turns"):
        read_prompts(lines)


def test_categories_measured_apart_have_a_table_of_their_own():
    results = [result(category=name).model_copy(update={"acceptance_length": length}) for name, length in (("coding", 2.0), ("math", 1.5))]
    assert "| acceptance length | coding | math |" in markdown(results)
    assert "| P-EAGLE K=3 | 2.00 | 1.50 |" in markdown(results)
    assert "acceptance length | coding" not in markdown([result()])
