"""Ray's stock LLM application with the engine settings our endpoints have: ``python loadtests/peers/ray_llm.py PORT``."""

import signal
import sys
import time

import ray
from ray import serve
from ray.serve.llm import LLMConfig, build_openai_app

from app.catalog import DeployRequest
from deployments import cpu
from deployments.builder import bundles, engine_arguments

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # leave as one does, so that its Ray ends with it
    spec = DeployRequest(model="smollm2-135m-instruct", speculation="none", name="target").to_spec()
    config = LLMConfig(
        model_loading_config={"model_id": spec.name, "model_source": spec.model},
        accelerator_config={"kind": spec.hardware},
        placement_group_config={"bundles": bundles(spec), "strategy": "PACK"},
        engine_kwargs=engine_arguments(spec),
        runtime_env={"env_vars": cpu.environment()},
    )
    ray.init(address="local", num_cpus=8, include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])})
    serve.run(build_openai_app({"llm_configs": [config]}), name="llm", route_prefix="/")
    while True:
        time.sleep(60)
