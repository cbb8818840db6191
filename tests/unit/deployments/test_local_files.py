import asyncio
from dataclasses import fields

import pytest
from ray.llm._internal.common.callbacks.base import CallbackCtx
from ray.serve.llm import LLMConfig

from deployments.local_files import LocalFiles


@pytest.mark.parametrize("folder", [True, False])
def test_only_what_is_no_folder_is_downloaded(tmp_path, folder):
    assert "run_init_node" in {field.name for field in fields(CallbackCtx)}
    source = str(tmp_path) if folder else "org/model"
    config = LLMConfig(model_loading_config={"model_id": "e", "model_source": source}, accelerator_config={"kind": "cpu"})
    started = LocalFiles(llm_config=config)
    asyncio.run(started.run_callback("on_before_node_init"))
    assert started.ctx.run_init_node is not folder
