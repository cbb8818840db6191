"""``peagle bench``: experiments, and their reports."""

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console

from loadtests import bench as harness
from loadtests.experiment import read_experiment, read_results
from loadtests.held import held, read_looks
from loadtests.page import page
from loadtests.report import capacity, comparison, markdown, read_records

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
    with console.status("starting") as status:

        def told(text: str) -> None:
            console.log(text)
            status.update(text)

        harness.run(wanted, out / wanted.name, url, told)
    _write(out / wanted.name)


@bench.command()
def report(folder: Path) -> None:
    """Write an experiment's tables (report.md) and page (report.html) from what was measured."""
    _write(folder)


@bench.command()
def compare(before: Path, after: Path) -> None:
    """Two results of an experiment: where the 95 % intervals do not overlap there is a difference, else noise."""
    console.print(comparison(read_results(before), read_results(after)), soft_wrap=True)


def _write(folder: Path) -> None:
    results = read_results(folder)
    if not results:
        console.print(f"[red]{folder} holds no results yet")
        raise typer.Exit(1)
    records = {}
    for label in sorted({one.label for one in results}):
        wanted = (folder / "records" / f"{one.name}.jsonl" for one in results if one.label == label)
        records[label] = [record for path in wanted if path.exists() for record in read_records(path)]
    tables = markdown(results) + (f"\n{capacity(results)}" if results[0].slo else "")
    if looks := read_looks(folder / harness.LOOKS):
        tables += f"\n{held(looks)}"
    (folder / "report.md").write_text(tables)
    (folder / "report.html").write_text(page(folder.name, results, records))
    console.print(tables, soft_wrap=True)
    console.print(f"{folder / 'report.md'}, {folder / 'report.html'}")
