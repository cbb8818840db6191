"""SageMaker's instance types as the hardware they stand for here: how many GPUs of what kind one replica gets.

Counts and kinds: AWS's own pages of the EC2 accelerated instance types. Ray's names of the accelerators where it has them.
"""

from typing import NamedTuple


class Instance(NamedTuple):
    """``gpus`` of one replica (0: a CPU), Ray's ``accelerator`` type (empty: any), memory of one GPU in GiB."""

    gpus: int
    accelerator: str | None = None
    gpu_memory_gib: int | None = None


CPU = Instance(0)
_SIZES_G5 = {"xlarge": 1, "2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "16xlarge": 1, "12xlarge": 4, "24xlarge": 4, "48xlarge": 8}
_SIZES_G7E = {"2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "12xlarge": 2, "24xlarge": 4, "48xlarge": 8}
_FAMILIES: dict[str, tuple[dict[str, int], str | None, int]] = {
    "g5": (_SIZES_G5, "A10G", 24),
    "g6": (_SIZES_G5, "L4", 24),
    "g6e": (_SIZES_G5, "L40S", 48),
    "g7e": (_SIZES_G7E, None, 96),  # RTX PRO 6000, for which Ray has no name
    "p4d": ({"24xlarge": 8}, "A100", 40),
    "p4de": ({"24xlarge": 8}, "A100", 80),
    "p5": ({"4xlarge": 1, "48xlarge": 8}, "H100", 80),
    "p5e": ({"48xlarge": 8}, "H200", 141),
    "p5en": ({"48xlarge": 8}, "H200", 141),
    "p6-b200": ({"48xlarge": 8}, "B200", 180),
}
_CPU_FAMILIES = ("c4", "c5", "c5d", "c6i", "c6g", "c7i", "c7g", "m4", "m5", "m5d", "m6i", "m6g", "m7i", "r5", "r6i", "r7i", "t2")


def instance(instance_type: str | None) -> Instance | None:
    """What ``ml.<family>.<size>`` stands for; ``ml.cpu`` and nothing are a CPU, None is a type unknown here."""
    if not instance_type or instance_type == "ml.cpu":
        return CPU
    prefix, _, rest = instance_type.partition(".")
    family, _, size = rest.partition(".")
    if prefix != "ml":
        return None
    if family in _CPU_FAMILIES:
        return CPU
    sizes, accelerator, memory = _FAMILIES.get(family, ({}, None, 0))
    return Instance(sizes[size], accelerator, memory) if size in sizes else None


def known() -> str:
    """The GPU families, for messages."""
    return ", ".join(f"ml.{family}" for family in _FAMILIES)
