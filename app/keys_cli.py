"""``peagle keys``: who may call the gateway."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from app.keys import KeyFileError, Kind, Limits, create_key, key_file, read_keys, revoke_key

app = typer.Typer(no_args_is_help=True, help="Keys: who may call the gateway.")
console = Console()


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Whose key it is.")],
    kind: Annotated[Kind, typer.Option(help="api: a bearer key for the OpenAI routes; aws: an access key for SageMaker's.")] = "api",
    requests_per_minute: Annotated[int | None, typer.Option("--rpm", help="Requests a minute, of each gateway replica.")] = None,
    concurrent: Annotated[int | None, typer.Option(help="Requests at once, of each gateway replica.")] = None,
) -> None:
    """Make a key; it is told once. The gateway knows it within a second."""
    try:
        key, told = create_key(key_file(), name, kind, Limits(requests_per_minute=requests_per_minute, concurrent=concurrent))
    except KeyFileError as error:
        raise typer.BadParameter(str(error)) from None
    if kind == "api":
        console.print(told, soft_wrap=True, highlight=False)
    else:
        console.print(f"aws_access_key_id = {key.identifier}\naws_secret_access_key = {told}", soft_wrap=True, highlight=False)


@app.command("list")
def list_() -> None:
    """The keys, without their secrets."""
    table = Table("name", "kind", "id", "requests/minute", "at once", title=str(key_file()))
    for key in read_keys(key_file()).keys:
        shown = key.identifier if key.kind == "aws" else f"sha256 {key.identifier[:12]}…"
        table.add_row(key.name, key.kind, shown, str(key.limits.requests_per_minute or "-"), str(key.limits.concurrent or "-"))
    console.print(table)


@app.command()
def revoke(name: Annotated[str, typer.Argument(help="Whose key goes.")]) -> None:
    """Take a key away; within a second it opens nothing."""
    try:
        revoke_key(key_file(), name)
    except KeyFileError as error:
        raise typer.BadParameter(str(error)) from None
    console.print(f"revoked: {name}")
