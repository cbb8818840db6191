"""Check a head's folder against its target without loading either: what vLLM would only say minutes later."""

import json
import struct
from pathlib import Path
from typing import Any


def head_problems(head: Path, target: Path, parallel: bool) -> list[str]:
    """What keeps the head in ``head`` from drafting for ``target``; empty when nothing does.

    Args:
        head: a folder with ``config.json`` and ``model.safetensors``, in vLLM's or speculators' layout.
        target: the target's Hugging Face folder.
        parallel: whether it is to draft in parallel (P-EAGLE), which needs ``mask_hidden`` and a mask token.
    """
    config_file, weights_file = head / "config.json", head / "model.safetensors"
    if missing := [file.name for file in (config_file, weights_file) if not file.is_file()]:
        return [f"head {head} has no {' and no '.join(missing)}"]
    config: dict[str, Any] = json.loads(config_file.read_text())
    layer_config = config.get("transformer_layer_config", config)
    target_config: dict[str, Any] = json.loads((target / "config.json").read_text())
    target_config = target_config.get("text_config", target_config)
    try:
        shapes = tensor_shapes(weights_file)
    except (ValueError, struct.error) as error:
        return [f"{weights_file} is not a safetensors file: {error}"]
    problems = []

    hidden, vocabulary = target_config["hidden_size"], target_config["vocab_size"]
    if layer_config.get("hidden_size") != hidden and layer_config.get("target_hidden_size") != hidden:
        problems.append(f"the head was made for hidden size {layer_config.get('hidden_size')}, the target has {hidden}")
    if layer_config.get("vocab_size") != vocabulary:
        problems.append(f"the head was made for a vocabulary of {layer_config.get('vocab_size')} tokens, the target has {vocabulary}")

    layer_ids = config.get("eagle_aux_hidden_state_layer_ids") or config.get("eagle_config", {}).get("eagle_aux_hidden_state_layer_ids")
    layers = target_config["num_hidden_layers"]
    if not layer_ids:
        problems.append("config.json names no eagle_aux_hidden_state_layer_ids: vLLM would guess which target layers the head was trained on")
    elif outside := [layer for layer in layer_ids if not 0 <= layer <= layers]:
        problems.append(f"the head reads target layer {outside[0]}, the target has {layers}")
    if layer_ids and "fc.weight" in shapes and shapes["fc.weight"][1] != hidden * len(layer_ids):
        wanted = hidden * len(layer_ids)
        problems.append(f"fc.weight takes {shapes['fc.weight'][1]} values, {len(layer_ids)} layers of the target give {wanted}")
    if "embed_tokens.weight" in shapes and shapes["embed_tokens.weight"] != [vocabulary, hidden]:
        problems.append(f"embed_tokens.weight is {shapes['embed_tokens.weight']}, the target's is {[vocabulary, hidden]}")
    drafted = config.get("draft_vocab_size")
    if drafted and "lm_head.weight" in shapes and shapes["lm_head.weight"][0] != drafted:
        problems.append(f"config.json says draft_vocab_size {drafted}, lm_head.weight has {shapes['lm_head.weight'][0]} rows")
    if "d2t" in shapes and shapes["d2t"][0] != shapes.get("lm_head.weight", shapes["d2t"])[0]:
        problems.append(f"d2t maps {shapes['d2t'][0]} draft tokens, lm_head.weight has {shapes['lm_head.weight'][0]} rows")

    if parallel:
        if layer_ids and "mask_hidden" in shapes and shapes["mask_hidden"][-1] != hidden * len(layer_ids):
            problems.append(f"mask_hidden has {shapes['mask_hidden'][-1]} values, {len(layer_ids)} captured layers need {hidden * len(layer_ids)}")
        if "mask_hidden" not in shapes:
            problems.append("the head has no mask_hidden: it was not trained for parallel drafting (is it an EAGLE-3 head?)")
        mask = next((config[key] for key in ("ptd_token_id", "pard_token", "mask_token_id") if config.get(key) is not None), None)
        if mask is None:
            problems.append("config.json names no mask token (ptd_token_id): parallel drafting needs one")
        elif not 0 <= mask < vocabulary:
            problems.append(f"the mask token {mask} is outside the target's vocabulary of {vocabulary}")
    context, reach = target_config.get("max_position_embeddings"), layer_config.get("max_position_embeddings")
    if context and reach and reach < context:
        problems.append(f"the head's max_position_embeddings {reach} would cap the target's context of {context} (vllm#48894)")
    return problems


def tensor_shapes(weights: Path) -> dict[str, list[int]]:
    """Names and shapes in a safetensors file, from its header alone."""
    with weights.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > weights.stat().st_size:
            raise ValueError("its header is longer than the file")
        header = json.loads(file.read(length))
    return {name: entry["shape"] for name, entry in header.items() if name != "__metadata__"}
