"""A target with quantized weights, to see that a head made for the original still drafts for it."""

from itertools import islice
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

from drafter.data import read_generations
from drafter.gptq import calibrate, rounded
from drafter.weights import share

Scheme = Literal["int8", "int4"]
GROUP = 32  # divides the sizes of small models too; presets' 128 does not
CALIBRATED = 128  # answers


def scheme_of(name: Scheme) -> QuantizationScheme:
    """int4: weights alone, in groups of 32. int8: per-channel weights and per-token activations, since vLLM's CPU kernels
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


def quantize_target(target: Path, folder: Path, scheme: Scheme, data: Path | None = None) -> Path:
    """Write ``target`` quantized as ``folder``, in compressed-tensors' format, which vLLM reads. The output layer stays as it is.

    Args:
        target: the original's folder.
        folder: where the quantized one goes.
        scheme: of ``scheme_of``.
        data: the target's own answers, on the first of which int4 is calibrated; None: every weight goes to the nearest.

    Raises:
        DataError: a row of the data is wrong.
    """
    model = AutoModelForCausalLM.from_pretrained(target, dtype=torch.bfloat16)
    apply_quantization_config(model, QuantizationConfig(config_groups={"group_0": scheme_of(scheme)}, ignore=["lm_head"]))
    modules: dict[str, Any] = {name: module for name, module in model.named_modules() if is_module_quantized(module)}
    products = {}
    if data and scheme == "int4":
        answers = islice(read_generations(data, model.config.vocab_size), CALIBRATED)
        products = calibrate(AutoModelForCausalLM.from_pretrained(target), modules, [answer.token_ids for answer in answers])
    for name, module in modules.items():
        args: QuantizationArgs = module.quantization_scheme.weights
        if name in products:
            weight, scale = rounded(module.weight.data, products[name], args)
            module.weight.data.copy_(weight)
        else:
            groups = module.weight.data.reshape(module.weight.shape[0], -1, args.group_size or module.weight.shape[1])
            scale, _ = calculate_qparams(groups.amin(-1), groups.amax(-1), args)
        module.weight_scale.data.copy_(scale.reshape(module.weight_scale.shape))
    compressor: Any = ModelCompressor.from_pretrained_model(model)
    compressor.compress_model(model)
    model.save_pretrained(folder)
    compressor.update_config(str(folder))
    share(folder)
    AutoTokenizer.from_pretrained(target).save_pretrained(folder)
    return folder
