"""Rounding weights so that what one column loses the later ones make up for: GPTQ (arXiv 2210.17323), on a target's own answers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from compressed_tensors.quantization import QuantizationArgs
from rich.progress import track

SHRINKS = torch.linspace(1.0, 0.6, 9)  # of a group's range: what cutting its largest weight costs, the others may win
DAMPING = 0.01  # of the mean diagonal, as the paper has it


@contextmanager
def input_products(modules: Mapping[str, torch.nn.Module]) -> Iterator[dict[str, torch.Tensor]]:
    """The sums of x x^T [in, in] over all inputs x that pass through each module inside the block."""
    products: dict[str, torch.Tensor] = {}

    def hook(name: str) -> Any:
        def add(_: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
            flat = inputs[0].detach().flatten(0, -2).float()
            products[name] = products.get(name, 0) + flat.T @ flat

        return add

    with ExitStack() as hooks:
        for name, module in modules.items():
            hooks.enter_context(module.register_forward_pre_hook(hook(name)))
        yield products


@torch.no_grad()
def calibrate(model: Any, names: Iterable[str], rows: Sequence[Sequence[int]]) -> dict[str, torch.Tensor]:
    """``input_products`` of the named modules of a model over rows of token ids."""
    with input_products({name: model.get_submodule(name) for name in names}) as products:
        for row in track(rows, "calibrating"):
            model(input_ids=torch.tensor([row]))
    return products


def rounded(weight: torch.Tensor, products: torch.Tensor, args: QuantizationArgs) -> tuple[torch.Tensor, torch.Tensor]:
    """A weight on the grid of symmetric integers, and that grid.

    Args:
        weight: [out, in].
        products: [in, in], of ``calibrate``.
        args: bits and the size of a group of columns, which divides ``in``.

    Returns:
        The rounded weight [out, in] in float32, and its scales [out, groups] in the weight's type.
    """
    size, low, high = args.group_size or weight.shape[1], -(2 ** (args.num_bits - 1)), 2 ** (args.num_bits - 1) - 1
    left, result = weight.float().clone(), torch.empty_like(weight, dtype=torch.float32)
    damped = products + DAMPING * products.diagonal().mean() * torch.eye(len(products))
    # Row i of the upper factor says how the loss of column i is made up for by those after it.
    upper = torch.linalg.cholesky(torch.cholesky_inverse(torch.linalg.cholesky(damped)), upper=True)
    scales = []
    for start in range(0, weight.shape[1], size):
        scale = _best_scale(left[:, start : start + size], damped.diagonal()[start : start + size], low, high).to(weight.dtype)
        scales.append(scale)
        end, lost = start + size, torch.empty(len(weight), size)
        for column in range(start, end):
            result[:, column] = (left[:, column] / scale.float()).round().clamp(low, high) * scale.float()
            lost[:, column - start] = (left[:, column] - result[:, column]) / upper[column, column]
            left[:, column + 1 : end] -= torch.outer(lost[:, column - start], upper[column, column + 1 : end])
        left[:, end:] -= lost @ upper[start:end, end:]
    return result, torch.stack(scales, 1)


def _best_scale(group: torch.Tensor, importance: torch.Tensor, low: int, high: int) -> torch.Tensor:
    """The scale [out] of each row's group [out, size] that loses least, each column's loss weighed by its input's size."""
    widest = (group.abs().amax(1) / ((high - low) / 2)).clamp(min=1e-8)
    tried = SHRINKS[:, None] * widest  # [tries, out]
    grid = (group / tried[..., None]).round().clamp(low, high) * tried[..., None]
    losses = ((grid - group).square() * importance).sum(-1)
    return tried.gather(0, losses.argmin(0, keepdim=True))[0]
