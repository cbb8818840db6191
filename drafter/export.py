"""Write a trained head as the folder vLLM reads: ``config.json``, ``model.safetensors`` in bfloat16, and a model card."""

import csv
import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import AutoConfig

from drafter.recipe import TrainingConfig
from drafter.weights import share

_PARAMETERS_KEPT = ("fc.", "layers.", "norm.", "lm_head.", "mask_hidden", "d2t")


def head_config(config: TrainingConfig, target: Mapping[str, Any]) -> dict[str, Any]:
    """``config.json`` of a head, from the target's: same sizes and positions, fewer layers, a draft vocabulary."""
    kept = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "hidden_act", "rms_norm_eps",
            "max_position_embeddings", "rope_parameters", "vocab_size", "bos_token_id", "eos_token_id", "attention_bias", "mlp_bias")  # fmt: skip
    layer_ids = list(config.head.captured_layers(target["num_hidden_layers"]))
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        **{key: target[key] for key in kept if key in target},
        "num_hidden_layers": config.head.layers,
        "draft_vocab_size": config.head.draft_vocab_size,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": layer_ids, "use_aux_hidden_state": True},
        **({"ptd_token_id": config.head.mask_token_id} if config.head.method == "p_eagle" else {}),
    }


def export_head(run: Path, target: Path, folder: Path, acceptance: Path | None = None, base_model: str = "", license_id: str = "apache-2.0") -> Path:
    """Turn a training run into ``folder``.

    Args:
        run: the run's folder (``checkpoint.pt``, ``data.json``, ``curves.png``).
        target: the target's folder.
        folder: where the head goes.
        acceptance: the table ``peagle drafter evaluate --csv`` wrote, for the model card.
        base_model: the target's name in the card; empty: its folder's.
        license_id: the head's license, by SPDX name.
    """
    saved = torch.load(run / "checkpoint.pt", weights_only=True, map_location="cpu")
    config = TrainingConfig.model_validate(saved["config"])
    kept = (*_PARAMETERS_KEPT, "embed_tokens.") if config.head.embedding == "trained" else _PARAMETERS_KEPT
    weights = {name: value for name, value in saved["head"].items() if name.startswith(kept)}
    tensors = {name: (value.to(torch.bfloat16) if value.is_floating_point() else value).contiguous() for name, value in weights.items()}
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    data = json.loads((run / "data.json").read_text())
    training = {"steps": saved["step"], "answer_tokens": saved["tokens"]}
    training = {key: count + data["before"].get(key, 0) for key, count in training.items()}
    described = {**head_config(config, AutoConfig.from_pretrained(target).to_dict()), "training": training}
    (folder / "config.json").write_text(json.dumps(described, indent=2) + "\n")
    share(folder)
    parameters = sum(tensor.numel() for name, tensor in tensors.items() if name != "d2t")
    (folder / "README.md").write_text(_card(config, training, parameters, data, acceptance, base_model or target.name, license_id))
    if (run / "curves.png").exists():
        shutil.copy(run / "curves.png", folder / "curves.png")
    return folder


def _card(
    config: TrainingConfig,
    training: Mapping[str, int],
    parameters: int,
    data: Mapping[str, Any],
    acceptance: Path | None,
    base_model: str,
    license_id: str,
) -> str:
    method = "P-EAGLE" if config.head.method == "p_eagle" else "EAGLE-3"
    facts = {
        "target": base_model,
        "method": f"{method} ({'arXiv 2602.01469' if method == 'P-EAGLE' else 'arXiv 2503.01840'})",
        "layers": config.head.layers,
        "parameters": f"{parameters / 1e6:.1f} M, bfloat16",
        "draft vocabulary": config.head.draft_vocab_size,
        "draft positions trained": config.head.depth,
        "embedding": "the target's, shared" if config.head.embedding == "frozen" else "its own, trained",
        "data": ", ".join(f"{file['name']} ({file['rows']:,} rows, {file['answer_tokens']:,} answer tokens)" for file in data["files"]),
        "optimizer steps": f"{training['steps']:,}, {config.batch} samples each",
        "answer tokens seen": f"{training['answer_tokens']:,}",
        "optimizer": f"{config.optimizer}, {config.precision}, seed {config.seed}",
        "made by commit": _commit(),
        "license": license_id,
    }
    lines = ["---", f"license: {license_id}", f"base_model: {base_model}", f"tags: [speculative-decoding, {config.head.method}]", "---", ""]
    lines += [f"# {method} head for {base_model}", "", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in facts.items()), ""]
    lines += ["## Acceptance", "", *(_table(acceptance) if acceptance else ["Not measured yet: `peagle drafter evaluate`."]), ""]
    speculative = {"method": "eagle3", "model": "FOLDER", "num_speculative_tokens": 5}
    if config.head.method == "p_eagle":
        speculative["parallel_drafting"] = True
    lines += ["## Use", "", "```sh", f"vllm serve TARGET --speculative-config '{json.dumps(speculative)}'", "```", ""]
    return "\n".join(lines)


def _table(acceptance: Path) -> list[str]:
    with acceptance.open() as file:
        rows = list(csv.DictReader(file))
    positions = [name for name in rows[0] if name.startswith("rate_")]
    lines = ["Greedy; acceptance length counts the bonus token.", "", "| task | K | acceptance length | accepted, by position |", "|---|---|---|---|"]
    for row in rows:
        rates = "  ".join(f"{float(row[name]):.0%}" for name in positions if row[name])
        lines.append(f"| {row['task']} | {row['k']} | {float(row['length']):.2f} | {rates} |")
    return lines


def _commit() -> str:
    found = subprocess.run(
        ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"],  # noqa: S607
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return found.stdout.strip() or "unknown (not a git checkout)"
