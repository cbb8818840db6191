"""A SageMaker vLLM container's environment, read as an endpoint's model, engine arguments and speculation.

``SM_VLLM_MAX_MODEL_LEN=4096`` is vLLM's ``--max-model-len 4096``: the prefix goes, the rest is lower-cased. ``true`` or
nothing is a flag, ``false`` leaves the argument out, a JSON object stays whole, a JSON array is several values.
"""

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from deployments.arguments import ALLOWED, known_arguments, nearest, operators, parse
from deployments.speculation import NoSpeculation, Speculation, SpeculationError, parse_speculative_config

PREFIX = "SM_VLLM_"
DRAFTING_SPEC = "PARALLEL_DRAFTING_SPEC"
CHANNELS = PurePosixPath("/opt/ml/additional-model-data-sources")
MODEL_DATA = "/opt/ml/model"
# Read by the container itself, or by libraries inside it; not vLLM's.
_NOT_ENGINE = {"MODEL", "SPECULATIVE_CONFIG", DRAFTING_SPEC, "HOST", "PORT"}


class ContainerError(ValueError):
    """An environment variable cannot be used.

    Args:
        name: the variable.
        message: what is wrong and what would do.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name


class Container(NamedTuple):
    """What an environment says: where the target is, how it drafts, and vLLM's further engine arguments."""

    model: str
    speculation: Speculation
    engine: dict[str, Any]


def read_environment(environment: Mapping[str, str], channels: Mapping[str, str], model_data: str | None = None) -> Container:
    """Read a container's environment.

    Args:
        environment: the variables.
        channels: additional model data by channel name; a head's path under ``/opt/ml/additional-model-data-sources`` becomes it.
        model_data: where the model data is, if any.

    Raises:
        ContainerError: a variable is unknown, or its value is none the argument takes; the message names the nearest known.
    """
    engine: dict[str, Any] = {}
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name.removeprefix(PREFIX) in _NOT_ENGINE:
            continue
        argument = name.removeprefix(PREFIX).lower()
        if argument not in known_arguments():
            near = nearest(argument)
            hint = f"; did you mean {PREFIX}{near.upper()}?" if near else ""
            raise ContainerError(name, f"vLLM has no engine argument --{argument.replace('_', '-')}{hint}")
        if operators(argument):
            message = f"--{argument.replace('_', '-')} is the operator's to set, not a model's; {ALLOWED} on the server can allow it"
            raise ContainerError(name, message)
        if (value := read_value(environment[name])) is not None:
            try:
                engine[argument] = value if isinstance(value, dict) else parse(argument, value)
            except ValueError as error:
                raise ContainerError(name, str(error)) from None
    return Container(resolve(_model(environment, model_data), channels, model_data, f"{PREFIX}MODEL"), _speculation(environment, channels), engine)


def read_value(text: str) -> Any:
    """One variable's value: True for a flag, None where the argument is left out, a list, a dict, or the text."""
    stripped = text.strip()
    if stripped.lower() in ("", "true"):
        return True
    if stripped.lower() == "false":
        return None
    if stripped[0] in "[{":
        try:
            return json.loads(stripped)
        except ValueError:
            return stripped
    return stripped


def _model(environment: Mapping[str, str], model_data: str | None) -> str:
    model = environment.get(f"{PREFIX}MODEL") or (MODEL_DATA if model_data else None) or environment.get("HF_MODEL_ID")
    if not model:
        raise ContainerError(f"{PREFIX}MODEL", "no model is given: set SM_VLLM_MODEL or HF_MODEL_ID, or give model data")
    return model


def _speculation(environment: Mapping[str, str], channels: Mapping[str, str]) -> Speculation:
    config = _object(environment, f"{PREFIX}SPECULATIVE_CONFIG")
    name, drafting = next(
        ((name, found) for name in (DRAFTING_SPEC, PREFIX + DRAFTING_SPEC) if (found := _object(environment, name)) is not None), ("", None)
    )
    if config is None:
        if drafting is not None:
            raise ContainerError(name, f"there is nothing to draft with: set {PREFIX}SPECULATIVE_CONFIG with the head's model")
        return NoSpeculation()
    if isinstance(config.get("model"), str):
        config = {**config, "model": resolve(config["model"], channels, None, f"{PREFIX}SPECULATIVE_CONFIG")}
    try:
        return parse_speculative_config(config, drafting)
    except SpeculationError as error:
        raise ContainerError(f"{PREFIX}SPECULATIVE_CONFIG", str(error)) from None


def _object(environment: Mapping[str, str], name: str) -> dict[str, Any] | None:
    if name not in environment:
        return None
    try:
        value = json.loads(environment[name])
    except ValueError as error:
        raise ContainerError(name, f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ContainerError(name, "must be a JSON object")
    return value


def resolve(location: str, channels: Mapping[str, str], model_data: str | None, name: str) -> str:
    """A path inside SageMaker's container as the place it stands for here.

    Raises:
        ContainerError: it names a channel that was not given.
    """
    path = PurePosixPath(location)
    if model_data and (path == PurePosixPath(MODEL_DATA)):
        return model_data
    if CHANNELS not in path.parents:
        return location
    channel, *rest = path.relative_to(CHANNELS).parts
    if channel not in channels:
        known = ", ".join(sorted(channels)) or "none"
        raise ContainerError(name, f"{location} names channel {channel!r}; AdditionalModelDataSources has {known}")
    return str(PurePosixPath(channels[channel], *rest))
