"""Records and results in tables: what faults were to clients, what an experiment found, what changed between two."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

from rich.table import Table

from loadtests.experiment import CellResult
from loadtests.record import RequestRecord


def read_records(path: Path) -> list[RequestRecord]:
    """The records a run left."""
    return [RequestRecord.model_validate_json(line) for line in path.read_text().splitlines()]


def fault_table(runs: Mapping[str, Sequence[RequestRecord]], retried: Mapping[str, int]) -> Table:
    """What each fault was to clients: retried by the server, sent again by the client; lost is what was neither answered to its end nor refused."""
    columns = ("fault", "sent", "answered", "other text", "retried", "sent again", "refused", "lost", "longest stall (s)")
    table = Table(*columns, title="what faults were to clients")
    for fault, records in runs.items():
        outcomes = Counter(record.outcome for record in records)
        lost = outcomes["cut"] + outcomes["failed"]
        stall = max((record.longest_stall_s for record in records if record.outcome == "answered"), default=0.0)
        table.add_row(fault, str(len(records)), str(outcomes["answered"]), str(other_texts(records)), str(retried.get(fault, 0)),
                      str(sum(record.sent_again for record in records)), str(outcomes["refused"]), str(lost), f"{stall:.1f}")  # fmt: skip
    return table


def other_texts(records: Sequence[RequestRecord]) -> int:
    """Answers that differ from the one most others to the same question had: at temperature 0 there is one."""
    by_prompt: dict[str, Counter[str]] = {}
    for record in records:
        if record.outcome == "answered":
            by_prompt.setdefault(record.prompt, Counter())[record.text] += 1
    return sum(texts.total() - texts.most_common(1)[0][1] for texts in by_prompt.values())


class Mean(NamedTuple):
    """A mean and its 95 % confidence interval, by Student's t over repetitions."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.1f} ± {self.high - self.value:.1f}"

    def differs(self, other: "Mean") -> bool:
        """Whether the intervals do not overlap; overlap is called noise."""
        return self.low > other.high or other.low > self.high


def mean_of(values: Sequence[float]) -> Mean:
    """The mean of repetitions; one alone has no interval."""
    from scipy import stats

    value = mean(values)
    if len(values) < 2:
        return Mean(value, value, value)
    half = float(stats.t.ppf(0.975, len(values) - 1)) * stdev(values) / len(values) ** 0.5
    return Mean(value, value - half, value + half)


Cells = dict[tuple[str, int | None, int], list[CellResult]]


def by_cell(results: Sequence[CellResult]) -> Cells:
    """Repetitions together, by method, K and concurrency."""
    cells: Cells = {}
    for one in results:
        cells.setdefault((one.method, one.k, one.concurrency), []).append(one)
    return cells


def markdown(results: Sequence[CellResult]) -> str:
    """Output tokens a second by concurrency, method and K, with the ratios P-EAGLE is known by; then latencies and acceptance."""
    cells = by_cell(results)
    methods = sorted({(method, k) for method, k, _ in cells}, key=str)
    lines = [
        "| concurrency | " + " | ".join(_name(*one) for one in methods) + " | P-EAGLE / EAGLE-3 | P-EAGLE / none |",
        "|---" * (len(methods) + 3) + "|",
    ]
    for concurrency in sorted({one.concurrency for one in results}):
        otps = {one: mean_of([cell.otps for cell in cells[*one, concurrency]]) for one in methods if (*one, concurrency) in cells}
        row = [str(otps.get(one, "-")) for one in methods]
        lines.append(f"| {concurrency} | " + " | ".join([*row, _ratio(otps, "eagle3"), _ratio(otps, "none")]) + " |")
    lines += [
        "",
        "| contender | concurrency | TTFT p50 / p95 (ms) | TPOT p50 (ms) | latency p50 / p95 (s) | acceptance length | answered |",
        "|---" * 7 + "|",
    ]
    for (method, k, concurrency), repeated in sorted(cells.items(), key=str):
        lengths = [one.acceptance_length for one in repeated if one.acceptance_length is not None]
        ttft, late = (1000 * mean(getattr(one, name) for one in repeated) for name in ("ttft_p50", "ttft_p95"))
        tpot = 1000 * mean(one.tpot_p50 for one in repeated)
        middle, slow = (mean(getattr(one, name) for one in repeated) for name in ("latency_p50", "latency_p95"))
        told = [f"{ttft:.0f} / {late:.0f}", f"{tpot:.1f}", f"{middle:.2f} / {slow:.2f}", f"{mean(lengths):.2f}" if lengths else "-"]
        told.append(f"{sum(one.answered for one in repeated)} of {sum(one.requests for one in repeated)}")
        lines.append(f"| {_name(method, k)} | {concurrency} | " + " | ".join(told) + " |")
    return "\n".join(lines) + "\n"


def _name(method: str, k: int | None) -> str:
    return {"p_eagle": "P-EAGLE", "eagle3": "EAGLE-3"}.get(method, method) + (f" K={k}" if k else "")


def _ratio(otps: Mapping[tuple[str, int | None], Mean], against: str) -> str:
    """The best P-EAGLE over the best of another method."""
    ours = [one.value for (method, _), one in otps.items() if method == "p_eagle"]
    theirs = [one.value for (method, _), one in otps.items() if method == against]
    return f"{max(ours) / max(theirs):.2f}" if ours and theirs else "-"


def comparison(before: Sequence[CellResult], after: Sequence[CellResult]) -> str:
    """Two runs of an experiment, cell by cell: a difference where the 95 % intervals do not overlap, else noise."""
    earlier, later = by_cell(before), by_cell(after)
    lines = ["| contender | concurrency | before (OTPS) | after (OTPS) | ratio | |", "|---" * 6 + "|"]
    for method, k, concurrency in sorted(set(earlier) & set(later), key=str):
        old, new = (mean_of([one.otps for one in cells[method, k, concurrency]]) for cells in (earlier, later))
        verdict = "difference" if old.differs(new) else "noise"
        lines.append(f"| {_name(method, k)} | {concurrency} | {old} | {new} | {new.value / old.value:.2f} | {verdict} |")
    return "\n".join(lines) + "\n"
