"""``serve run app.main:build``: the gateway, the endpoint manager, and the endpoints named in the arguments."""

from typing import Any

import click
from pydantic import ValidationError
from ray.serve import Application

from app.authentication import INSECURE
from app.catalog import DeployRequest
from app.errors import first_fault
from app.gateway import Gateway
from app.manager import EndpointManager
from drafter.home import peagle_home


def declared_endpoints(arguments: dict[str, Any]) -> list[DeployRequest]:
    """The endpoints in the application's arguments: ``endpoints: [...]`` in YAML, or one endpoint's fields at the top.

    Raises:
        pydantic.ValidationError: a field is unknown or its value is out of range.
    """
    arguments = {key: value for key, value in arguments.items() if key != "insecure"}
    if "endpoints" in arguments:
        if others := sorted(set(arguments) - {"endpoints"}):
            raise ValueError(f"{others[0]} stands beside endpoints: put it into one of them")
        return [DeployRequest.model_validate(entry) for entry in arguments["endpoints"]]
    return [DeployRequest.model_validate(arguments)] if arguments else []


def build(arguments: dict[str, Any]) -> Application:
    """The Serve application, from the arguments of ``serve run`` or the ``args`` of a Serve config.

    ``insecure: true`` lets other machines call while no key is configured.

    Raises:
        click.ClickException: an argument is wrong; ``serve run`` prints the message alone.
    """
    try:
        specs = [request.to_spec() for request in declared_endpoints(arguments)]
    except ValidationError as error:
        raise click.ClickException(": ".join(filter(None, first_fault(error)))) from None
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    manager = EndpointManager.bind(  # type: ignore[attr-defined]  # Serve's decorator turns the class into a Deployment
        str(peagle_home() / "registry.sqlite"), specs
    )
    gateway = Gateway
    if str(arguments.get("insecure", "")).lower() in ("true", "1"):
        options = {"num_cpus": 0, "runtime_env": {"env_vars": {INSECURE: "1"}}}
        gateway = Gateway.options(ray_actor_options=options)  # type: ignore[attr-defined]
    return gateway.bind(manager)  # type: ignore[attr-defined]
