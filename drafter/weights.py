"""Who may read weights: safetensors writes files for their owner alone, and a server may run as another user."""

from pathlib import Path


def share(folder: Path) -> None:
    """Give the weights in ``folder`` the permissions of its ``config.json``."""
    for weights in folder.glob("*.safetensors"):
        weights.chmod((folder / "config.json").stat().st_mode)
