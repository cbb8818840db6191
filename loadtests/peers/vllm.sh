#!/bin/sh
# Bare vLLM, the CPU default on the port in $1, with the settings our endpoints have (deployments/builder.py, drafter/engine.py). It is the
# server of `vllm serve`, whose command wants a package called vllm, which the CPU build is not.
set -e
bin=$(dirname "$0")/../../.venv/bin
eval "$("$bin/python" - <<'PYTHON'
import shlex
from deployments.builder import engine_arguments
from deployments.cpu import environment
from app.catalog import DeployRequest
spec = DeployRequest(model="smollm2-135m-instruct", speculation="none").to_spec()
arguments = []
for name, value in engine_arguments(spec).items():
    flag = "--" + name.replace("_", "-")
    arguments += [flag] if value is True else [] if value is False else [flag, str(value)]
print("model=" + shlex.quote(spec.model))
print("arguments=" + shlex.quote(shlex.join(arguments)))
print("\n".join(f"export {name}={shlex.quote(value)}" for name, value in environment().items()))
PYTHON
)"
# shellcheck disable=SC2086  # the arguments are several words
exec "$bin/python" -m vllm.entrypoints.openai.api_server --model "$model" --served-model-name target --host 127.0.0.1 --port "$1" $arguments
