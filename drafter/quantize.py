"""A target with quantized weights, by rounding to nearest, to see that a head made for the original still drafts for it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import torch
from compressed_tensors.compressors import ModelCompressor
from compressed_tensors.quantization import (
    QuantizationArgs,
    QuantizationConfig,
    QuantizationScheme,
    QuantizationStrategy,
    apply_quantization_config,
)
from compressed_tensors.quantization.utils import calculate_qparams, is_module_quantized
from transformers import AutoModelForCausalLM, AutoTokenizer

Scheme = Literal["int8", "int4"]
GROUP = 64  # divides the sizes of small models too; presets' 128 does not


def scheme_of(name: Scheme) -> QuantizationScheme:
    """int4: weights alone, in groups of 64. int8: per-channel weights and per-token activations, since vLLM's CPU kernels
    (0.29) have no 8-bit scheme for weights alone.
    """
    if name == "int4":
        weights = QuantizationArgs(num_bits=4, symmetric=True, strategy=QuantizationStrategy.GROUP, group_size=GROUP)
        return QuantizationScheme(targets=["Linear"], weights=weights)
    return QuantizationScheme(
        targets=["Linear"],
        weights=QuantizationArgs(num_bits=8, symmetric=True, strategy=QuantizationStrategy.CHANNEL),
        input_activations=QuantizationArgs(num_bits=8, symmetric=True, strategy=QuantizationStrategy.TOKEN, dynamic=True, observer=None),
    )


def quantize_target(target: Path, folder: Path, scheme: Scheme) -> Path:
    """Write ``target`` quantized as ``folder``, in compressed-tensors' format, which vLLM reads. The output layer stays as it is."""
    model = AutoModelForCausalLM.from_pretrained(target, dtype=torch.bfloat16)
    apply_quantization_config(model, QuantizationConfig(config_groups={"group_0": scheme_of(scheme)}, ignore=["lm_head"]))
    modules: Iterable[Any] = model.modules()
    for module in modules:
        if is_module_quantized(module):
            args: QuantizationArgs = module.quantization_scheme.weights
            rows = module.weight.shape[0]
            groups = module.weight.data.reshape(rows, -1, args.group_size or module.weight.shape[1])
            scale, _ = calculate_qparams(groups.amin(-1), groups.amax(-1), args)
            module.weight_scale.data.copy_(scale.reshape(module.weight_scale.shape))
    compressor: Any = ModelCompressor.from_pretrained_model(model)
    compressor.compress_model(model)
    model.save_pretrained(folder)
    compressor.update_config(str(folder))
    AutoTokenizer.from_pretrained(target).save_pretrained(folder)
    return folder
