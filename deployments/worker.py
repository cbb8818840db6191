"""The speculative worker: Ray's LLM server with the head beside the target, warmed up, answering in OpenAI's shapes."""

import asyncio
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from pydantic import BaseModel, ValidationError
from ray.serve.llm import LLMConfig
from ray.serve.llm.deployment import LLMServer
from ray.serve.llm.openai_api_models import ChatCompletionRequest, CompletionRequest, ErrorResponse

from deployments import resume, tracing, watchdog
from deployments.answer import AnswerStart, Piece, Progress, Taken
from deployments.depths import FIELD, DraftDepths
from deployments.draft_cost import draft_cost
from deployments.figures import EngineFigures
from deployments.gauges import ReplicaGauges
from deployments.pace import StepTimes
from deployments.resume import Task
from deployments.scoring import ReplicaLoad
from deployments.spec import EndpointSpec
from deployments.stat_logger import FiguresLogger
from deployments.work import Work, demand

_REQUESTS: dict[str, type[BaseModel]] = {"chat": ChatCompletionRequest, "completions": CompletionRequest}


class SpeculativeWorker(LLMServer):
    """One replica: the target sharded over its GPUs, the head loaded in the same processes."""

    async def __init__(  # type: ignore[misc]  # Serve awaits it
        self, llm_config: LLMConfig, spec: EndpointSpec, without_head: LLMConfig | None = None, head_failure: str | None = None
    ) -> None:
        """Start the engine and run first requests through it, so that the first clients do not pay for them.

        Args:
            llm_config: the engine's.
            spec: the endpoint.
            without_head: what to serve with when the head does not load; None: then the replica fails.
            head_failure: why there is no head, where that was known before.
        """
        self._spec, self._work = spec, Work()
        self._head_failure = head_failure
        self._tokenizer: Any = None
        try:
            await super().__init__(llm_config)
        except Exception as error:
            if without_head is None:
                raise
            self._head_failure = f"{type(error).__name__}: {error}"
            await super().__init__(without_head)
        self._draft_cost = 0.0 if self._head_failure else draft_cost(spec)
        self._gauges = ReplicaGauges(spec.name)
        await self._warm_up()
        limit = spec.limits.hang_s
        watchdog.watch(lambda: self._stalled_s() > limit, f"its engine has finished no step for {limit:g} s while requests wait")

    async def _warm_up(self) -> None:
        asked = {"model": self._spec.name, "prompt": "Hello", "max_tokens": 4, "temperature": 1.0, "logprobs": 1}
        # vLLM compiles what draws tokens and ranks their probabilities at the first use, anew for several requests: on a new CPU machine that takes
        # longer than a client waits, and than an engine may be silent for.
        await self._first("completions", asked)
        await asyncio.gather(*(self._first("completions", asked) for _ in range(2)))
        FiguresLogger.steps = StepTimes()  # a step that compiles says nothing of the pace
        # Completions, which every target has, must work; chat has a template to compile, which some lack.
        plain = {"model": self._spec.name, "max_tokens": 16, "temperature": 0}
        if (status := await self._first("completions", {**plain, "prompt": "Hello"})) != 200:
            raise RuntimeError(f"the engine could not answer its first request (status {status})")
        await self._first("chat", {**plain, "messages": [{"role": "user", "content": "Hello"}], "stream": True})

    async def _first(self, task: Task, body: dict[str, Any]) -> int:
        """Have a request answered, for its status alone."""
        return [item.status async for item in self.answer(task, body) if isinstance(item, AnswerStart)][-1]

    def _stalled_s(self) -> float:
        figures, work = FiguresLogger.latest, self._work
        busy = figures.running + figures.waiting > 0
        return watchdog.stalled_s(time.monotonic(), FiguresLogger.stepped, work.oldest, work.newest, busy=busy)

    async def answer(self, task: Task, body: dict[str, Any], progress: Progress | None = None) -> AsyncIterator[Taken | AnswerStart | Piece]:
        """Answer one OpenAI request, or go on with an answer another replica began.

        Yields:
            ``Taken``, an ``AnswerStart``, then the response's text: server-sent events as the engine makes them, or one JSON document.
        """
        yield Taken()
        shown = DraftDepths((await self._loaded()).backend_tokenizer, self._spec.speculation.num_speculative_tokens) if body.get(FIELD) else None
        body = {key: value for key, value in body.items() if key != FIELD}
        with self._work.held(demand(body)) as number:
            async for item in self._continued(task, body, progress) if progress else self._answered(task, body):
                if isinstance(item, Piece):
                    self._work.wrote(number, len(item.tokens))
                    yield item._replace(text=shown.add(item.text, item.tokens)) if shown else item
                else:
                    yield item

    async def _answered(self, task: Task, body: dict[str, Any]) -> AsyncIterator[AnswerStart | Piece]:
        carried = resume.resumable(task, body)
        try:
            request = _REQUESTS[task].model_validate({**body, "return_token_ids": True} if carried else body)
        except ValidationError as error:
            yield AnswerStart(status=400, streaming=False)
            yield Piece(openai_error(error))
            return
        started = False
        async for part in self._engine(task, request):
            if isinstance(part, str):
                piece, origin = resume.read(part, hide=not body.get("return_token_ids")) if carried else (Piece(part), None)
                if not started:
                    yield AnswerStart(status=200, streaming=True, origin=origin)
                    started = True
                yield piece
            else:
                refused = getattr(part, "error", None)
                yield AnswerStart(status=refused.code if refused else 200, streaming=False)
                yield Piece(part.model_dump_json())

    async def _continued(self, task: Task, body: dict[str, Any], progress: Progress) -> AsyncIterator[AnswerStart | Piece]:
        tokenizer = await self._loaded()
        decode = partial(tokenizer.decode, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        tokens = resume.whole_tokens(progress.tokens, progress.text, decode)
        if tokens is None:
            raise RuntimeError("the tokens sent so far do not read as the text sent so far")
        request = CompletionRequest.model_validate(resume.continuation(task, body, progress.origin.prompt, tokens, FiguresLogger.context))
        yield AnswerStart(status=200, streaming=True, origin=progress.origin)
        async for part in self._engine("completions", request):
            if not isinstance(part, str):
                raise RuntimeError(part.model_dump_json())
            piece, _ = resume.read(part, hide=not body.get("return_token_ids"))
            yield piece._replace(text=resume.as_before(piece.text, task, progress, len(tokens)))

    async def _engine(self, task: Task, request: Any) -> AsyncIterator[Any]:
        """What vLLM answers, part by part; a dead engine ends the replica, so that no client reads its error."""
        try:
            async for item in await (self.chat if task == "chat" else self.completions)(request, tracing.carrier()):
                for part in item if isinstance(item, list) else [item]:
                    if (isinstance(part, str) and part.startswith('data: {"error"')) or getattr(part, "error", None):
                        await self._end_if_dead()
                    yield part
        except Exception:
            await self._end_if_dead()
            raise

    async def _end_if_dead(self) -> None:
        try:
            await self.check_health()
        except Exception as error:  # whatever it says, the engine is gone
            watchdog.end_replica(f"its engine died ({type(error).__name__})")

    async def _loaded(self) -> Any:
        if self._tokenizer is None:
            from transformers import AutoTokenizer

            self._tokenizer = await asyncio.to_thread(AutoTokenizer.from_pretrained, self._spec.model)
        return self._tokenizer

    async def figures(self) -> EngineFigures:
        """The engine's latest figures."""
        return FiguresLogger.latest.model_copy(update={"pace": FiguresLogger.steps.pace(), "head_failure": self._head_failure})

    async def record_routing_stats(self) -> dict[str, Any]:
        """Serve's hook: what the routers are told."""
        figures, work, running = FiguresLogger.latest, self._work, self._running
        self._gauges.tell(
            running=running, waiting=work.ongoing - running, kv_cache_usage=figures.kv_cache_usage, head_failed=float(self._head_failure is not None),
            draft_cost=self._draft_cost,
        )  # fmt: skip
        return ReplicaLoad(
            at=time.time(),
            running=running,
            waiting=work.ongoing - running,
            slots=self._spec.max_num_seqs,
            prefill_tokens=work.prefill_tokens,
            decode_tokens=work.decode_tokens,
            expected_answer=work.expected,
            kv_cache_usage=figures.kv_cache_usage,
            prefix_hit_rate=figures.prefix_hits / figures.prefix_queries if figures.prefix_queries else 0.0,
            stalled_s=self._stalled_s(),
            pace=FiguresLogger.steps.pace(),
        ).model_dump()

    async def record_autoscaling_stats(self) -> dict[str, float]:
        """Serve's hook: what the autoscaling policy is told."""
        return {"running": self._running, "waiting": self._work.ongoing - self._running, "finished": float(self._work.finished)}

    @property
    def _running(self) -> int:
        return min(FiguresLogger.latest.running, self._work.ongoing)  # no engine step tells of an abort


def openai_error(error: ValidationError) -> str:
    """OpenAI's error object for a request body that does not validate: it names the parameter and what is wrong."""
    first = error.errors()[0]
    # Unions add their branches' names to the path; a client knows only the parameters it wrote.
    path = [str(part) for part in first["loc"] if isinstance(part, int) or str(part).isidentifier()]
    parameter = ".".join(path) or None
    message = f"{parameter}: {first['msg']}" if parameter else first["msg"]
    body = ErrorResponse.model_validate({"error": {"message": message, "type": "invalid_request_error", "param": parameter, "code": 400}})
    return body.model_dump_json()
