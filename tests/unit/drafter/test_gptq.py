import torch
from compressed_tensors.quantization import QuantizationArgs, QuantizationStrategy

from drafter.gptq import rounded

ARGS = QuantizationArgs(num_bits=4, symmetric=True, strategy=QuantizationStrategy.GROUP, group_size=16)


def test_outputs_are_nearer_than_with_every_weight_rounded_to_the_nearest():
    torch.manual_seed(0)
    inputs = torch.randn(512, 8) @ torch.randn(8, 64) + 0.1 * torch.randn(512, 64)  # correlated, as a model's are
    weight = torch.randn(24, 64)
    result, scales = rounded(weight, inputs.T @ inputs, ARGS)

    def loss(other):
        return (inputs @ (other - weight).T).square().mean()

    widest = (weight.unflatten(1, (4, 16)).abs().amax(-1) / 7.5).repeat_interleave(16, 1)
    assert loss(result) < 0.5 * loss((weight / widest).round().clamp(-8, 7) * widest)
    steps = result / scales.repeat_interleave(16, 1)
    assert torch.allclose(steps, steps.round(), atol=1e-4)
    assert steps.min() >= -8.001
    assert steps.max() <= 7.001
