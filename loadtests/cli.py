"""``peagle bench``: experiments, and their reports."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console

from loadtests import bench as harness
from loadtests.experiment import read_experiment, read_results
from loadtests.held import held, read_looks
from loadtests.page import page
from loadtests.report import by_dataset, capacity, comparison, markdown, paired, read_records

bench = typer.Typer(help="Experiments: endpoints side by side under load, and their tables.", no_args_is_help=True)
console = Console()
Out = Annotated[Path, typer.Option(help="Folder that holds the results of experiments.")]


@bench.command()
def run(
    experiment: Path,
    out: Out = Path("results"),
    url: Annotated[str, typer.Option(envvar="PEAGLE_URL", help="Our gateway.")] = "http://127.0.0.1:8000",
) -> None:
    """Measure an experiment; one that was stopped goes on where it was."""
    try:
        wanted = read_experiment(experiment)
    except ValidationError as error:
        first = error.errors()[0]
        console.print(f"[red]{experiment}: {'.'.join(map(str, first['loc']))}: {first['msg']}")
        raise typer.Exit(1) from None
    with _torn_down_when_terminated(), console.status("starting") as status:

        def told(text: str) -> None:
            console.log(text)
            status.update(text)

        harness.run(wanted, out / wanted.name, url, told)
    _write(out / wanted.name)


@bench.command()
def report(folder: Path) -> None:
    """Write an experiment's tables (report.md) and a page for each data set (report-NAME.html) from what was measured."""
    _write(folder)


@bench.command()
def compare(before: Path, after: Path) -> None:
    """Two results of an experiment: where the 95 % intervals do not overlap there is a difference, else noise."""
    earlier, later = by_dataset(read_results(before)), by_dataset(read_results(after))
    for name in sorted(set(earlier) & set(later)):
        console.print(f"{name}\n\n{comparison(earlier[name], later[name])}", soft_wrap=True)


@contextmanager
def _torn_down_when_terminated() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does: by an exception, so that endpoints and peers end too."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _write(folder: Path) -> None:
    datasets = by_dataset(read_results(folder))
    if not datasets:
        console.print(f"[red]{folder} holds no results yet")
        raise typer.Exit(1)
    tables = ""
    for name, results in datasets.items():
        records = {}
        for label in sorted({one.label for one in results}):
            wanted = (folder / "records" / f"{one.name}.jsonl" for one in results if one.label == label)
            records[label] = [record for path in wanted if path.exists() for record in read_records(path)]
        tables += f"## {name}\n\n{markdown(results)}\n{paired(results)}\n" + (f"{capacity(results)}\n" if results[0].slo else "")
        (folder / f"report-{name}.html").write_text(page(f"{folder.name}: {name}", results, records))
    if looks := read_looks(folder / harness.LOOKS):
        tables += f"## what the stack's processes held\n\n{held(looks)}"
    (folder / "report.md").write_text(tables)
    console.print(tables, soft_wrap=True)
    console.print(f"{folder / 'report.md'}, {', '.join(str(folder / f'report-{name}.html') for name in datasets)}")
