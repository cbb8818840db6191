"""Where models may be: hub ids, targets of the catalog, and folders under the operator's model roots. Nothing else is opened.

``s3://bucket/key`` is ``bucket/key`` under a root: teams that keep their models in S3 mirror the bucket there.
"""

import os
from pathlib import Path

from app.catalog import REPOSITORY, load_cards
from deployments.spec import EndpointSpec
from deployments.speculation import NoSpeculation
from drafter.home import peagle_home

ROOTS = "PEAGLE_MODEL_ROOTS"


class LocationError(ValueError):
    """A model's place is none this server opens; the message names the field."""


def roots() -> list[Path]:
    """Folders models may be in: ``PEAGLE_MODEL_ROOTS`` (colon-separated), what this repository fetched, and its own heads."""
    configured = [Path(root).expanduser() for root in os.environ.get(ROOTS, "").split(":") if root]
    return [root.resolve() for root in (*configured, peagle_home() / "models", REPOSITORY / "drafter" / "heads")]


def local(location: str, field: str) -> str:
    """The folder or hub id that ``location`` names.

    Raises:
        LocationError: it is outside the model roots, or there is nothing.
    """
    for card in load_cards().values():
        if location == card.target:
            return card.target_location
        if location in card.heads.values() and (REPOSITORY / location).is_dir():
            return str(REPOSITORY / location)
    if location.startswith("s3://"):
        for root in roots():
            if (found := _inside(root, root / location.removeprefix("s3://").strip("/"))) and found.is_dir():
                return str(found)
        raise LocationError(f"{field}: {location} is not there; peagle-serve looks for it as a folder under {_shown()} ({ROOTS})")
    if location.startswith(("/", ".", "~", "file:")) or location.count("/") > 1 or ".." in location:
        path = Path(location.removeprefix("file://")).expanduser()
        for root in roots():
            if (found := _inside(root, path)) and found.is_dir():
                return str(found)
        raise LocationError(f"{field}: {location} is not a folder under {_shown()} ({ROOTS})")
    return location


def within_roots(spec: EndpointSpec) -> EndpointSpec:
    """A spec asked for over HTTP, its head where it is.

    Raises:
        LocationError: the head is outside the model roots.
    """
    if isinstance(spec.speculation, NoSpeculation):
        return spec
    head = local(spec.speculation.head, "head")
    return spec.model_copy(update={"speculation": spec.speculation.model_copy(update={"head": head})})


def _inside(root: Path, path: Path) -> Path | None:
    try:
        resolved = path.resolve()
    except (OSError, ValueError):  # a loop of links, or a name no file system takes
        return None
    return resolved if resolved.is_relative_to(root) else None


def _shown() -> str:
    return ", ".join(str(root) for root in roots())
