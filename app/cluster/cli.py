"""``peagle cluster``: the files in ``cluster/``."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from app.catalog import REPOSITORY
from app.cluster.render import write

cluster = typer.Typer(help="Serve configs, KubeRay, Ray's launcher, images: made from the catalog.", no_args_is_help=True)


@cluster.callback()
def _group() -> None:
    """With one command, typer would drop its name."""


@cluster.command()
def render(folder: Annotated[Path, typer.Option(help="Where the files go.")] = REPOSITORY / "cluster") -> None:
    """Write every file again; says which changed."""
    changed = write(folder)
    for path in changed:
        Console().print(path)
    Console().print(f"{len(changed)} files changed")
