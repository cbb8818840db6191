"""Who may call: API keys (kept as hashes) and AWS access keys, in one file only its owner can read.

An AWS secret has to be kept as it is, since a signature is checked by making it again.
"""

import hashlib
import hmac
import os
import secrets
import stat
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_serializer

from drafter.home import peagle_home

Kind = Literal["api", "aws"]


class KeyFileError(RuntimeError):
    """The key file cannot be used; the message says why and what to do."""


class Limits(BaseModel):
    """How much one key may ask for, of each gateway replica."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    requests_per_minute: int | None = Field(default=None, ge=1, description="Requests a minute; empty: no limit.")
    concurrent: int | None = Field(default=None, ge=1, description="Requests at once; empty: no limit.")


class Key(BaseModel):
    """One caller's key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, description="Whose it is.")
    kind: Kind = Field(description="api: a bearer key; aws: an access key with a secret.")
    identifier: str = Field(description="SHA-256 of an API key; id of an AWS access key.")
    secret: SecretStr = Field(default=SecretStr(""), description="Secret of an AWS access key.")
    limits: Limits = Field(default=Limits(), description="How much it may ask for.")

    @field_serializer("secret")
    def _kept(self, secret: SecretStr) -> str:
        return secret.get_secret_value()


class Keys(BaseModel):
    """All keys. None at all: whoever reaches the gateway may call it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: tuple[Key, ...] = Field(default=(), description="The keys.")

    def bearer(self, token: str) -> Key | None:
        """The API key that ``token`` is. Takes as long whichever key matches."""
        offered, found = hashlib.sha256(token.encode()).hexdigest(), None
        for key in self.keys:
            if key.kind == "api" and hmac.compare_digest(key.identifier, offered):
                found = key
        return found

    def access_key(self, identifier: str) -> Key | None:
        """The AWS access key of that id."""
        return next((key for key in self.keys if key.kind == "aws" and key.identifier == identifier), None)


def key_file() -> Path:
    """Where the keys are: ``PEAGLE_KEYS``, else ``keys.json`` in peagle-serve's home."""
    return Path(os.environ.get("PEAGLE_KEYS") or peagle_home() / "keys.json")


def read_keys(path: Path) -> Keys:
    """The keys in ``path``; none when there is no such file.

    Raises:
        KeyFileError: others can read it, or it is not a key file.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return Keys()
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise KeyFileError(f"{path} can be read by others: chmod 600 it")
    try:
        return Keys.model_validate_json(path.read_bytes())
    except ValueError as error:
        raise KeyFileError(f"{path} is not a key file: {error}") from None


def create_key(path: Path, name: str, kind: Kind, limits: Limits) -> tuple[Key, str]:
    """Add a key; the key, and what is told once only: the API key, or the AWS secret.

    Raises:
        KeyFileError: the name is taken, or the file cannot be used.
    """
    keys = read_keys(path)
    if any(key.name == name for key in keys.keys):
        raise KeyFileError(f"there is a key called {name!r} already: revoke it first, or choose another name")
    if kind == "api":
        told = f"sk-peagle-{secrets.token_urlsafe(32)}"
        key = Key(name=name, kind=kind, identifier=hashlib.sha256(told.encode()).hexdigest(), limits=limits)
    else:
        told = secrets.token_urlsafe(30)
        identifier = "AKIA" + "".join(secrets.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") for _ in range(16))
        key = Key(name=name, kind=kind, identifier=identifier, secret=SecretStr(told), limits=limits)
    _write(path, Keys(keys=(*keys.keys, key)))
    return key, told


def revoke_key(path: Path, name: str) -> None:
    """Take a key away.

    Raises:
        KeyFileError: there is none of that name.
    """
    keys = read_keys(path)
    left = tuple(key for key in keys.keys if key.name != name)
    if len(left) == len(keys.keys):
        known = ", ".join(key.name for key in keys.keys) or "none"
        raise KeyFileError(f"there is no key called {name!r}; there are: {known}")
    _write(path, Keys(keys=left))


def _write(path: Path, keys: Keys) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(keys.model_dump_json(indent=2))
    partial.rename(path)
