"""The address Serve listens on, and whether the gateway may be open to it.

Ray has no public call that tells the address inside a replica; this module is the one place that asks Serve's client.
"""

import ipaddress
import os

from app.authentication import INSECURE
from app.keys import key_file, read_keys


class OpenToOthersError(RuntimeError):
    """Other machines could call, and nothing keeps strangers out."""


def host() -> str:
    """The address Serve's proxies are bound to."""
    from ray.serve.context import _get_global_client

    found: str = _get_global_client().http_config.host
    return found


def check(address: str) -> None:
    """Refuse to start where other machines could call without a key.

    Raises:
        OpenToOthersError: the address is not this machine's own, no key is configured, and the operator did not say ``insecure``.
    """
    if _own(address) or os.environ.get(INSECURE) == "1" or read_keys(key_file()).keys:
        return
    raise OpenToOthersError(
        f"Serve listens on {address} and no key is configured: make one with `peagle keys create`, listen on 127.0.0.1, or deploy with insecure: true"
    )


def _own(address: str) -> bool:
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
