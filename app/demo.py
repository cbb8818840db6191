"""``make demo``: everything from nothing to a streamed answer, with what it took and what P-EAGLE brought."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ray import serve
from rich.console import Console
from rich.table import Table

from app.catalog import get_card
from app.client import Answer, Client
from app.local_ray import connect
from app.main import build
from deployments.cpu import too_small
from drafter.acceptance import Acceptance
from drafter.engine import preloads
from drafter.target import is_prepared, prepare_target, target_folder

MODEL = "smollm2-135m-instruct"
PLAIN = "smollm2-135m-plain"
URL = "http://127.0.0.1:8000"
PROMPT = "Write a Python function that returns the n-th Fibonacci number, and explain how it works."
MAX_TOKENS = 200


def run_demo(console: Console) -> None:
    """Set up, serve, ask, compare, and say how to go on."""
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    if reason := too_small(endpoints=2):  # with P-EAGLE and without
        console.print(f"[red]This machine is too small for the demo:[/] {reason}.")
        raise SystemExit(1)
    if len(preloads()) < 2:
        console.print("[yellow]libtcmalloc or libiomp5 is missing:[/] the engine will be slower (on Debian: apt-get install libtcmalloc-minimal4).")
    with _step(console, "target: cached" if is_prepared(target_folder()) else "target: SmolLM2-135M-Instruct") as tell:
        prepare_target(tell)
    with _step(console, "Ray"):
        connect()
    with _step(console, "gateway and endpoint manager"):
        serve.start(http_options={"host": "127.0.0.1", "port": 8000})
        endpoints = [{"model": MODEL}, {"model": MODEL, "name": PLAIN, "speculation": "none"}]
        serve.run(build({"endpoints": endpoints}), name="peagle", route_prefix="/")
    client = Client(URL)
    for name in (MODEL, PLAIN):
        with _step(console, f"endpoint {name}: loading the target" + (" and the head" if name == MODEL else "")) as tell:
            client.wait(name, tell)
    compare(console, client)
    goodbye(console)


@contextmanager
def _step(console: Console, title: str) -> Iterator[Any]:
    started = time.monotonic()
    with console.status(title) as status:
        yield lambda text: status.update(f"{title}: {text} [dim]({time.monotonic() - started:.0f} s)[/]")
    console.print(f"[green]✓[/] {title} [dim]{time.monotonic() - started:.1f} s[/]")


def compare(console: Console, client: Client) -> None:
    """One prompt with P-EAGLE, streamed to the screen, and the same without speculation; then the table."""
    for name in (MODEL, PLAIN):
        client.chat(name, "Say hello.", lambda _: None, max_tokens=16, temperature=0)  # both start equally warm
    before = _acceptance(client)
    console.print(f"\n[bold]{PROMPT}[/]\n")
    drafted = client.chat(
        MODEL, PROMPT, lambda piece: console.print(piece, end="", markup=False, highlight=False), max_tokens=MAX_TOKENS, temperature=0
    )
    acceptance = _acceptance(client).since(before)
    console.print("\n")
    with console.status("the same prompt without speculation"):
        plain = client.chat(PLAIN, PROMPT, lambda _: None, max_tokens=MAX_TOKENS, temperature=0)
    console.print(comparison(drafted, plain, acceptance))


def comparison(drafted: Answer, plain: Answer, acceptance: Acceptance) -> Table:
    """P-EAGLE beside no speculation."""
    table = Table("", "P-EAGLE", "no speculation", title=f"{MODEL}, K = {len(acceptance.accepted)}, greedy, {drafted.completion_tokens} tokens")
    table.add_row("time to first token", f"{drafted.ttft_s * 1000:.0f} ms", f"{plain.ttft_s * 1000:.0f} ms")
    table.add_row("output tokens per second", f"{drafted.tokens_per_second:.1f}", f"{plain.tokens_per_second:.1f}")
    table.add_row("speedup", f"{drafted.tokens_per_second / plain.tokens_per_second:.2f}x", "1.00x")
    table.add_row("acceptance length", f"{acceptance.length:.2f}", "1.00")
    rates = "  ".join(f"{position}: {rate:.0%}" for position, rate in enumerate(acceptance.rates, start=1))
    table.add_row("draft tokens accepted, by position", rates, "-")
    table.add_row("text", "the same" if drafted.text == plain.text else "[red]differs[/]", "")
    return table


def _acceptance(client: Client) -> Acceptance:
    return Acceptance.model_validate(client.call("GET", f"/v1/endpoints/{MODEL}/stats")["acceptance"])


def goodbye(console: Console) -> None:
    """How to call the server, which stays up, and how to stop it."""
    console.print(f"\nThe server stays up. Its playground: [bold]{URL}/[/]. Call it:\n")
    console.print(
        f"""  curl {URL}/v1/chat/completions -H 'Content-Type: application/json' \\
    -d '{{"model": "{MODEL}", "messages": [{{"role": "user", "content": "Hello!"}}]}}'

  from openai import OpenAI
  client = OpenAI(base_url="{URL}/v1", api_key="none")
  client.chat.completions.create(model="{MODEL}", messages=[{{"role": "user", "content": "Hello!"}}])

  .venv/bin/peagle invoke {MODEL} "Hello!" --stream
""",
        markup=False,
        highlight=False,
        soft_wrap=True,  # a command that is broken in two cannot be pasted
    )
    console.print(f"Other models: [bold]peagle catalog list[/] ({get_card(MODEL).title} is the CPU default). Stop it: [bold]make stop[/]")
