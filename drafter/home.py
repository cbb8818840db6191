"""Where peagle-serve keeps what it downloads, converts and computes."""

import os
from pathlib import Path


def peagle_home() -> Path:
    """The cache folder: ``$PEAGLE_HOME``, else ``peagle-serve`` under the user's cache directory."""
    if home := os.environ.get("PEAGLE_HOME"):
        return Path(home).expanduser().resolve()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache).expanduser().resolve() / "peagle-serve"
