"""The ``peagle`` command."""

import os
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from app.catalog import CatalogError, Method, get_card, load_cards
from app.client import Client, GatewayError
from app.cluster.cli import cluster as cluster_app
from app.cluster.cli import dashboards as dashboards_app
from app.keys_cli import app as keys_app
from app.plan import GPUS, plan
from deployments.cli import simulate as simulate_app
from drafter.cli import app as drafter_app

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help="Serve large language models with P-EAGLE.")
catalog_app = typer.Typer(no_args_is_help=True, help="Models that can be deployed.")
endpoints_app = typer.Typer(no_args_is_help=True, help="Endpoints: what is deployed.")
app.add_typer(catalog_app, name="catalog")
app.add_typer(endpoints_app, name="endpoints")
app.add_typer(keys_app, name="keys")
app.add_typer(cluster_app, name="cluster")
app.add_typer(dashboards_app, name="dashboards")
app.add_typer(drafter_app, name="drafter")
app.add_typer(simulate_app, name="simulate")
for further in entry_points(group="peagle.commands"):  # of rooms above this one
    app.add_typer(further.load(), name=further.name)
console = Console()

Url = Annotated[str, typer.Option(envvar="PEAGLE_URL", help="Where the gateway listens.")]
DEFAULT_URL = "http://127.0.0.1:8000"


@catalog_app.command("list")
def catalog_list() -> None:
    """The catalog in one table."""
    table = Table("model", "parameters", "license", "GPUs", "K", "P-EAGLE head")
    for card in load_cards().values():
        gpus = f"{card.minimum_gpus} x {card.gpu_memory_gib} GiB" if card.minimum_gpus else "none"
        table.add_row(
            card.name, f"{card.parameters_billion:g} B", card.license, gpus, str(card.num_speculative_tokens), card.heads.get("p_eagle", "not public")
        )
    console.print(table)


@catalog_app.command("show")
def catalog_show(model: Annotated[str, typer.Argument(help="A model of the catalog.")]) -> None:
    """One card, with the environment SageMaker would show for it."""
    card = get_card(model)
    table = Table("field", "value", title=card.title)
    for field, value in card.model_dump(exclude={"name", "title", "notes"}, exclude_defaults=True).items():
        table.add_row(field, str(value))
    for name, value in card.environment_preset().items():
        table.add_row(name, value)
    console.print(table)
    for note in card.notes:
        console.print(f"- {note}")


@app.command()
def deploy(
    model: Annotated[str, typer.Argument(help="A model of the catalog.")],
    name: Annotated[str | None, typer.Option(help="Name of the endpoint; default: the model's.")] = None,
    speculation: Annotated[Method, typer.Option(help="How tokens are drafted.")] = "p_eagle",
    k: Annotated[int | None, typer.Option("--k", help="Draft tokens a step; default: the card's.")] = None,
    head: Annotated[str | None, typer.Option(help="Another head's folder, under the server's PEAGLE_MODEL_ROOTS, or hub id.")] = None,
    tensor_parallel_size: Annotated[int | None, typer.Option("--tp", help="GPUs a replica; default: the card's minimum.")] = None,
    max_replicas: Annotated[int, typer.Option(help="Replicas at most.")] = 1,
    wait: Annotated[bool, typer.Option(help="Wait until it is in service.")] = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Deploy a model of the catalog as an endpoint."""
    if head and Path(head).is_dir():
        head = str(Path(head).resolve())  # the server's working folder is another one
    request: dict[str, Any] = {"model": model, "name": name, "speculation": speculation, "num_speculative_tokens": k, "head": head}
    request |= {"tensor_parallel_size": tensor_parallel_size, "max_replicas": max_replicas}
    client = Client(url)
    endpoint = client.call("POST", "/v1/endpoints", request)
    endpoint_name = endpoint["spec"]["name"]
    if wait:
        with console.status(f"{endpoint_name}: Creating") as status:
            endpoint = client.wait(endpoint_name, lambda now: status.update(f"{endpoint_name}: {now}"))
    console.print(f"{endpoint_name}: {endpoint['status']}")


@app.command("plan")
def plan_command(
    model: str,
    gpu: Annotated[str, typer.Option(help="Kind of GPU: " + ", ".join(GPUS))] = "H100",
    context: Annotated[int | None, typer.Option(help="Tokens a request may hold; empty: the card's.")] = None,
    concurrency: Annotated[int | None, typer.Option(help="Requests at a time; empty: the card's.")] = None,
) -> None:
    """How many GPUs a model needs, and what fills them."""
    wanted = plan(get_card(model), gpu, context, concurrency)
    table = Table("", wanted.model)
    table.add_row("weights", f"{wanted.weights_gib:.1f} GiB")
    table.add_row("head", f"{wanted.head_gib:.2f} GiB")
    table.add_row("KV cache", f"{wanted.kv_gib:.1f} GiB, {wanted.kv_bytes_per_token:,} bytes a token")
    table.add_row("GPUs a replica", f"{wanted.gpus} x {wanted.gpu}, {wanted.per_gpu_gib:.1f} of {GPUS[wanted.gpu]} GiB each")
    table.add_row("tensor_parallel_size", str(wanted.gpus))
    table.add_row("K", str(wanted.num_speculative_tokens))
    console.print(table)


@endpoints_app.command("list")
def endpoints_list(url: Url = DEFAULT_URL) -> None:
    """Every endpoint."""
    table = Table("endpoint", "status", "speculation", "K", "reason")
    for endpoint in Client(url).call("GET", "/v1/endpoints"):
        speculation = endpoint["spec"]["speculation"]
        k = str(speculation.get("num_speculative_tokens", "-"))
        table.add_row(endpoint["spec"]["name"], endpoint["status"], speculation["kind"], k, endpoint["failure_reason"] or "")
    console.print(table)


@endpoints_app.command("describe")
def endpoints_describe(name: Annotated[str, typer.Argument(help="The endpoint.")], url: Url = DEFAULT_URL) -> None:
    """One endpoint, as JSON."""
    console.print_json(data=Client(url).call("GET", f"/v1/endpoints/{name}"))


@endpoints_app.command("delete")
def endpoints_delete(name: Annotated[str, typer.Argument(help="The endpoint.")], url: Url = DEFAULT_URL) -> None:
    """Delete an endpoint; running requests are let finish."""
    console.print(f"{name}: {Client(url).call('DELETE', f'/v1/endpoints/{name}')['status']}")


@app.command()
def invoke(
    name: Annotated[str, typer.Argument(help="The endpoint.")],
    prompt: Annotated[str, typer.Argument(help="What to say to it.")],
    stream: Annotated[bool, typer.Option(help="Print the text as it arrives.")] = False,
    max_tokens: Annotated[int, typer.Option(help="Tokens at most.")] = 256,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 0.0,
    url: Url = DEFAULT_URL,
) -> None:
    """Ask an endpoint."""

    def show(piece: str) -> None:
        if stream:
            console.print(piece, end="", markup=False, highlight=False)

    answer = Client(url).chat(name, prompt, show, max_tokens=max_tokens, temperature=temperature)
    console.print("" if stream else answer.text, markup=False, highlight=False)
    console.print(f"[dim]{answer.completion_tokens} tokens, TTFT {answer.ttft_s * 1000:.0f} ms, {answer.tokens_per_second:.1f} tokens/s[/]")


@app.command()
def demo() -> None:
    """Serve the CPU default with its P-EAGLE head and compare it with plain decoding."""
    from app.demo import run_demo

    run_demo(console)


@app.command()
def stop() -> None:
    """Stop Serve and Ray on this machine."""
    from app.local_ray import stop_ray

    stop_ray()
    console.print("stopped")


def main() -> None:
    """Run ``peagle``; an error the user can mend is one line, not a traceback."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        app()
    except (GatewayError, CatalogError) as error:
        console.print(f"[red]error:[/] {error}", highlight=False)
        raise SystemExit(1) from None
