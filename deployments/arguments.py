"""vLLM's arguments by name: which there are, the nearest to a wrong one, and how its command line reads a value."""

import argparse
import dataclasses
import difflib
import os
from functools import cache
from typing import Any

# What runs code, opens files, listens or connects where its value says: a model's author may not decide that.
OPERATOR_ONLY = frozenset(
    """
    additional_config allowed_local_media_path allowed_media_domains api_key chat_template code_revision compilation_config
    data_parallel_address data_parallel_rpc_port data_parallel_supervisor_port default_mm_loras distributed_executor_backend download_dir
    ec_manager_config ec_transfer_config enable_prompt_embeds fault_tolerance_config generation_config hf_config_path host
    io_processor_plugin kv_events_config kv_transfer_config log_config_file logits_processors lora_modules master_addr master_port middleware
    mm_encoder_fp8_scale_path mm_encoder_fp8_scale_save_path model_class_overrides model_loader_extra_config nnodes node_rank
    otlp_traces_endpoint port profiler_config reasoning_parser_plugin root_path scheduler_cls ssl_ca_certs ssl_cert_reqs ssl_certfile
    ssl_ciphers ssl_keyfile enable_ssl_refresh tool_parser_plugin trust_remote_code trust_request_chat_template weight_transfer_config
    worker_cls worker_extension_cls
""".split()
)
ALLOWED = "PEAGLE_ALLOWED_ARGUMENTS"


def operators(name: str) -> bool:
    """Whether the argument is the operator's to set, who may allow it to everyone by ``PEAGLE_ALLOWED_ARGUMENTS=a,b``."""
    return name in OPERATOR_ONLY and name not in os.environ.get(ALLOWED, "").split(",")


@cache
def known_arguments() -> frozenset[str]:
    """Names of the arguments an engine here takes, as Python spells them: the two sets Ray's LLMConfig accepts."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.entrypoints.launchers.cli_args import FrontendArgs

    return frozenset(field.name for arguments in (AsyncEngineArgs, FrontendArgs) for field in dataclasses.fields(arguments))


def load() -> None:
    """Import what the other functions need, which takes seconds: once, before they are called where waiting is no good."""
    known_arguments()
    _parser()


def nearest(name: str) -> str | None:
    """The known argument most like ``name``, if any is."""
    return next(iter(difflib.get_close_matches(name, known_arguments(), n=1)), None)


def parse(name: str, value: Any) -> Any:
    """``value`` (text, a list of texts, or True for a flag) as vLLM's command line would read it.

    Raises:
        ValueError: vLLM's parser refuses it.
    """
    flag = f"--{name.replace('_', '-')}"
    given = [flag] if value is True else [flag, *(str(one) for one in (value if isinstance(value, list) else [value]))]
    try:
        known, rest = _parser().parse_known_args(given)
    except (argparse.ArgumentError, argparse.ArgumentTypeError, SystemExit):
        rest = ["refused"]
    if rest:
        raise ValueError("a value is missing" if value is True else f"{value!r} is not a value of vLLM's {flag}")
    return getattr(known, name)


@cache
def _parser() -> argparse.ArgumentParser:
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.entrypoints.launchers.cli_args import FrontendArgs
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = FlexibleArgumentParser(exit_on_error=False, add_help=False)
    return FrontendArgs.add_cli_args(AsyncEngineArgs.add_cli_args(parser))
