"""The speculative worker: Ray's LLM server with the head beside the target, warmed up, answering in OpenAI's shapes."""

from collections.abc import AsyncIterator
from typing import Any, Literal

from pydantic import BaseModel, ValidationError
from ray.serve.llm.deployment import LLMServer
from ray.serve.llm.openai_api_models import ChatCompletionRequest, CompletionRequest, ErrorResponse

from deployments.answer import AnswerStart
from deployments.figures import EngineFigures
from deployments.stat_logger import FiguresLogger

Task = Literal["chat", "completions"]
_REQUESTS: dict[str, type[BaseModel]] = {"chat": ChatCompletionRequest, "completions": CompletionRequest}


class SpeculativeWorker(LLMServer):
    """One replica: the target sharded over its GPUs, the head loaded in the same processes."""

    async def start(self) -> None:
        """Start the engine and run a first request through it, so that the first client does not pay for it."""
        await super().start()
        # Completions, which every target has, must work; chat has a template to compile, which some lack.
        common = {"model": (await self.llm_config()).model_id, "max_tokens": 16, "temperature": 0}
        async for item in self.answer("completions", {**common, "prompt": "Hello"}):
            if isinstance(item, AnswerStart) and item.status != 200:
                raise RuntimeError(f"the engine could not answer its first request (status {item.status})")
        async for _ in self.answer("chat", {**common, "messages": [{"role": "user", "content": "Hello"}], "stream": True}):
            pass

    async def answer(self, task: Task, body: dict[str, Any]) -> AsyncIterator[AnswerStart | str]:
        """Answer one OpenAI request.

        Yields:
            an ``AnswerStart``, then the response's text: server-sent events as the engine makes them, or one JSON document.
        """
        try:
            request = _REQUESTS[task].model_validate(body)
        except ValidationError as error:
            yield AnswerStart(status=400, streaming=False)
            yield openai_error(error)
            return
        method = self.chat if task == "chat" else self.completions
        started = False
        async for item in await method(request):
            for part in item if isinstance(item, list) else [item]:
                if isinstance(part, str):
                    if not started:
                        yield AnswerStart(status=200, streaming=True)
                        started = True
                    yield part
                else:
                    refused = getattr(part, "error", None)
                    yield AnswerStart(status=refused.code if refused else 200, streaming=False)
                    yield part.model_dump_json()

    async def figures(self) -> EngineFigures:
        """The engine's latest figures."""
        return FiguresLogger.latest


def openai_error(error: ValidationError) -> str:
    """OpenAI's error object for a request body that does not validate: it names the parameter and what is wrong."""
    first = error.errors()[0]
    # Unions add their branches' names to the path; a client knows only the parameters it wrote.
    path = [str(part) for part in first["loc"] if isinstance(part, int) or str(part).isidentifier()]
    parameter = ".".join(path) or None
    message = f"{parameter}: {first['msg']}" if parameter else first["msg"]
    body = ErrorResponse.model_validate({"error": {"message": message, "type": "invalid_request_error", "param": parameter, "code": 400}})
    return body.model_dump_json()
