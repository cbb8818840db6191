"""vLLM's arguments by name: which there are, the nearest to a wrong one, and how its command line reads a value."""

import argparse
import dataclasses
import difflib
from functools import cache
from typing import Any


@cache
def known_arguments() -> frozenset[str]:
    """Names of the arguments an engine here takes, as Python spells them: the two sets Ray's LLMConfig accepts."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.entrypoints.launchers.cli_args import FrontendArgs

    return frozenset(field.name for arguments in (AsyncEngineArgs, FrontendArgs) for field in dataclasses.fields(arguments))


def load() -> None:
    """Import what the other functions need, which takes seconds: once, before they are called where waiting is no good."""
    known_arguments()
    _parser()


def nearest(name: str) -> str | None:
    """The known argument most like ``name``, if any is."""
    return next(iter(difflib.get_close_matches(name, known_arguments(), n=1)), None)


def parse(name: str, value: Any) -> Any:
    """``value`` (text, a list of texts, or True for a flag) as vLLM's command line would read it.

    Raises:
        ValueError: vLLM's parser refuses it.
    """
    flag = f"--{name.replace('_', '-')}"
    given = [flag] if value is True else [flag, *(str(one) for one in (value if isinstance(value, list) else [value]))]
    try:
        known, rest = _parser().parse_known_args(given)
    except (argparse.ArgumentError, argparse.ArgumentTypeError, SystemExit):
        rest = ["refused"]
    if rest:
        raise ValueError("a value is missing" if value is True else f"{value!r} is not a value of vLLM's {flag}")
    return getattr(known, name)


@cache
def _parser() -> argparse.ArgumentParser:
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.entrypoints.launchers.cli_args import FrontendArgs
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = FlexibleArgumentParser(exit_on_error=False, add_help=False)
    return FrontendArgs.add_cli_args(AsyncEngineArgs.add_cli_args(parser))
