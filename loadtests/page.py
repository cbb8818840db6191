"""An experiment's results as one HTML page that needs nothing else: tables and plots."""

import base64
import html
import io
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from loadtests.experiment import CellResult
from loadtests.record import RequestRecord
from loadtests.report import by_cell, markdown, mean_of

_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;background:#fff;color:#111}
table{border-collapse:collapse;margin:1rem 0}td,th{border:1px solid #888;padding:.25rem .6rem;text-align:right}img{max-width:100%;background:#fff}
@media(prefers-color-scheme:dark){body{background:#16181c;color:#e6e6e6}}"""


def page(name: str, results: Sequence[CellResult], records: Mapping[str, Sequence[RequestRecord]]) -> str:
    """The page.

    Args:
        name: the experiment's.
        results: its cells.
        records: requests by contender.
    """
    import matplotlib

    matplotlib.use("Agg")
    plots = {"Output tokens a second by load": _otps(results), "Latency, share of requests answered within": _latency(records),
             "Acceptance by draft position": _acceptance(results), "Speedup over no speculation": _heat_map(results)}  # fmt: skip
    versions = {f"{package} {version}" for one in results for package, version in one.versions.items()}
    machines = " · ".join([*sorted({f"{one.machine}, commit {one.commit}" for one in results}), *sorted(versions)])
    body = "".join(f"<h2>{title}</h2><img alt='{title}' src='data:image/png;base64,{data}'>" for title, data in plots.items() if data)
    return (f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{html.escape(name)}</title><style>{_STYLE}</style>"
            f"<h1>{html.escape(name)}</h1><p>{html.escape(machines)}</p>{_tables(markdown(results))}{body}</html>")  # fmt: skip


def _tables(text: str) -> str:
    blocks = []
    for block in text.strip().split("\n\n"):
        head, _, *rows = [[html.escape(cell.strip()) for cell in line.strip("| ").split("|")] for line in block.splitlines()]
        cells = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
        blocks.append("<table><tr>" + "".join(f"<th>{cell}</th>" for cell in head) + f"</tr>{cells}</table>")
    return "".join(blocks)


def _figure() -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    return figure, figure.subplots()


def _data(figure: Any) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return base64.b64encode(buffer.getvalue()).decode()


def _otps(results: Sequence[CellResult]) -> str:
    figure, axes = _figure()
    cells = by_cell(results)
    for method, k in sorted({(method, k) for method, k, _ in cells}, key=str):
        points = sorted((load, mean_of([one.otps for one in these])) for (m, n, load), these in cells.items() if (m, n) == (method, k))
        errors = [one.high - one.value if isfinite(one.high) else 0.0 for _, one in points]
        axes.errorbar([x for x, _ in points], [one.value for _, one in points], yerr=errors, marker="o", label=f"{method} {k or ''}")
    axes.set_xscale("log", base=2)
    axes.set_xlabel("requests at a time")
    axes.set_ylabel("output tokens/s")
    axes.legend()
    return _data(figure)


def _latency(records: Mapping[str, Sequence[RequestRecord]]) -> str:
    figure, axes = _figure()
    for label, these in records.items():
        seconds = sorted(one.latency_s for one in these if one.outcome == "answered")
        axes.step(seconds, [(place + 1) / len(seconds) for place in range(len(seconds))], where="post", label=label)
    axes.set_xlabel("seconds")
    axes.set_ylabel("share")
    axes.legend()
    return _data(figure)


def _acceptance(results: Sequence[CellResult]) -> str:
    figure, axes = _figure()
    found = {one.label: one.acceptance_rates for one in results if one.acceptance_rates}
    for label, rates in found.items():
        axes.plot(range(1, len(rates) + 1), rates, marker="o", label=label)
    axes.set_xlabel("draft position")
    axes.set_ylabel("acceptance rate")
    axes.set_ylim(0, 1)
    if found:
        axes.legend()
    return _data(figure) if found else ""


def _heat_map(results: Sequence[CellResult]) -> str:
    cells = by_cell(results)
    plain = {load: mean_of([one.otps for one in these]).value for (method, _, load), these in cells.items() if method == "none"}
    rows = sorted({(method, k) for method, k, _ in cells if method != "none"}, key=str)
    columns = sorted(plain)
    if not rows or not columns or any((*row, column) not in cells for row in rows for column in columns):
        return ""
    values = [[mean_of([one.otps for one in cells[*row, column]]).value / plain[column] for column in columns] for row in rows]
    figure, axes = _figure()
    axes.imshow(values, cmap="RdYlGn", vmin=0.5, vmax=1.5, aspect="auto")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), [f"{method} {k or ''}" for method, k in rows])
    axes.set_xlabel("requests at a time")
    for y, row in enumerate(values):
        for x, value in enumerate(row):
            axes.text(x, y, f"{value:.2f}", ha="center", va="center", color="black")
    return _data(figure)
