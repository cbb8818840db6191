"""Records of requests in one table."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table

from loadtests.record import RequestRecord


def read_records(path: Path) -> list[RequestRecord]:
    """The records a run left."""
    return [RequestRecord.model_validate_json(line) for line in path.read_text().splitlines()]


def fault_table(runs: Mapping[str, Sequence[RequestRecord]], retried: Mapping[str, int]) -> Table:
    """What each fault was to clients. Lost is what was neither answered to its end nor refused."""
    table = Table("fault", "sent", "answered", "other text", "retried", "refused", "lost", "longest stall (s)", title="what faults were to clients")
    for fault, records in runs.items():
        outcomes = Counter(record.outcome for record in records)
        lost = outcomes["cut"] + outcomes["failed"]
        stall = max((record.longest_stall_s for record in records if record.outcome == "answered"), default=0.0)
        table.add_row(fault, str(len(records)), str(outcomes["answered"]), str(other_texts(records)), str(retried.get(fault, 0)),
                      str(outcomes["refused"]), str(lost), f"{stall:.1f}")  # fmt: skip
    return table


def other_texts(records: Sequence[RequestRecord]) -> int:
    """Answers that differ from the one most others to the same question had: at temperature 0 there is one."""
    by_prompt: dict[str, Counter[str]] = {}
    for record in records:
        if record.outcome == "answered":
            by_prompt.setdefault(record.prompt, Counter())[record.text] += 1
    return sum(texts.total() - texts.most_common(1)[0][1] for texts in by_prompt.values())
