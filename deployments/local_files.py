"""A target that is a folder has nothing to download: its engine starts at once.

Ray would first run a task on every node of the replica that fetches the files. The task imports vLLM in a process of its own, which takes as long
as any other part of a start, and the process stays.

``CallbackBase`` is private to Ray, though ``LLMConfig.callback_config`` asks for one; ``tests/unit/deployments/test_local_files.py`` fails when it
changes.
"""

from pathlib import Path

from ray.llm._internal.common.callbacks.base import CallbackBase


class LocalFiles(CallbackBase):
    """Ray's hooks of a replica's start."""

    def on_before_node_init(self) -> None:
        """Leave out the downloading where the target is a folder."""
        self.ctx.run_init_node = not Path(self.llm_config.get_engine_config().actual_hf_model_id).is_dir()
