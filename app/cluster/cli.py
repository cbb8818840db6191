"""``peagle cluster``: the files in ``cluster/``; ``peagle dashboards``: Grafana."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from app.catalog import REPOSITORY

cluster = typer.Typer(help="Serve configs, KubeRay, Ray's launcher, images, dashboards: made from the catalog.", no_args_is_help=True)
dashboards = typer.Typer(help="Grafana: endpoints, speculation, queue and autoscaling, cluster.", no_args_is_help=True)
console = Console()


@cluster.callback()
@dashboards.callback()
def _group() -> None:
    """With one command, typer would drop its name."""


@cluster.command()
def render(folder: Annotated[Path, typer.Option(help="Where the files go.")] = REPOSITORY / "cluster") -> None:
    """Write every file again; says which changed."""
    from app.cluster.render import write

    changed = write(folder)
    for path in changed:
        console.print(path)
    console.print(f"{len(changed)} files changed")


@dashboards.command()
def push(
    url: Annotated[str, typer.Option(envvar="GRAFANA_URL", help="Grafana's address.")] = "http://localhost:3000",
    token: Annotated[str, typer.Option(envvar="GRAFANA_TOKEN", help="Token of a service account with the role Admin.")] = "",
    prometheus: Annotated[str, typer.Option(help="Prometheus's address, as Grafana reaches it.")] = "http://localhost:9090",
) -> None:
    """Put the data source, the folder and the dashboards into Grafana; again brings them up to date."""
    from app.cluster.push import GrafanaError
    from app.cluster.push import push as push_all

    if not token:
        console.print("[red]✗[/] give a token of a Grafana service account: --token, or GRAFANA_TOKEN")
        raise typer.Exit(2)
    try:
        done = push_all(url, token, prometheus)
    except GrafanaError as error:
        console.print(f"[red]✗[/] {error}", highlight=False, soft_wrap=True)
        raise typer.Exit(1) from None
    table = Table("", "now", title=url)
    for what, how in done:
        table.add_row(what, how)
    console.print(table)
