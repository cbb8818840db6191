"""Serve's request router: each request goes where it will finish soonest."""

import time
from collections import defaultdict
from typing import Any

from ray.serve.request_router import FIFOMixin, PendingRequest, ReplicaID, RequestRouter, RunningReplica

from deployments.scoring import Prefixes, ReplicaLoad, blocks, cost, preference
from deployments.work import Demand, demand, prompt_text

TIE = 0.05  # estimates this much apart, as a share, are alike


class SoonestFinish(FIFOMixin, RequestRouter):
    """Ranks replicas by an estimate of when they would finish the request.

    What replicas report is up to a second old: each router adds the requests it sent since. Among replicas that come out
    alike, conversations with the same beginning go to the same one, whichever router they come through.
    """

    def initialize_state(self, **_: Any) -> None:
        """Serve's hook, called once."""
        self._sent: dict[ReplicaID, dict[str, tuple[float, Demand]]] = defaultdict(dict)
        self._prefixes: dict[ReplicaID, Prefixes] = defaultdict(Prefixes)

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        """Serve's hook: a rank for each replica, the best first."""
        if pending_request is None:
            return [candidate_replicas]
        pending_request.routing_context.should_backoff = True  # else Serve asks full replicas again without a pause
        body = _body(pending_request)
        asked, prompt = demand(body), blocks(prompt_text(body))
        estimates = {replica.replica_id: self._estimate(replica, asked, prompt) for replica in candidate_replicas}
        best = min(estimates.values(), default=0.0)

        def rank(replica: RunningReplica) -> tuple[float, bytes]:
            estimate = estimates[replica.replica_id]
            name = replica.replica_id.unique_id
            return (0.0, preference(prompt, name)) if estimate <= best * (1 + TIE) else (estimate, b"")

        return [[replica] for replica in sorted(candidate_replicas, key=rank)]

    def _estimate(self, replica: RunningReplica, asked: Demand, prompt: list[bytes]) -> float:
        stats = replica.routing_stats
        load = ReplicaLoad.model_validate(stats) if stats else ReplicaLoad()
        since = [one for at, one in self._sent[replica.replica_id].values() if at > load.at]
        held = self._prefixes[replica.replica_id].held(prompt) / len(prompt) if prompt else 0.0
        return cost(load.plus(since), asked, held)

    def on_request_routed(self, pending_request: PendingRequest, replica_id: ReplicaID, result: Any) -> None:  # noqa: ARG002
        """Serve's hook: remember what was sent where."""
        body = _body(pending_request)
        self._sent[replica_id][pending_request.metadata.internal_request_id] = (time.time(), demand(body))
        self._prefixes[replica_id].remember(blocks(prompt_text(body)))

    def on_request_completed(self, replica_id: ReplicaID, internal_request_id: str) -> None:
        """Serve's hook: a request is answered."""
        self._sent[replica_id].pop(internal_request_id, None)

    def update_replicas(self, replicas: list[RunningReplica]) -> None:
        """Serve's hook: forget replicas that are gone."""
        super().update_replicas(replicas)
        alive = {replica.replica_id for replica in replicas}
        for known in (self._sent, self._prefixes):
            for gone in set(known) - alive:
                del known[gone]


def _body(pending_request: PendingRequest) -> dict[str, Any]:
    """The request's body: the second argument of ``SpeculativeWorker.answer``; other calls have none."""
    arguments = pending_request.args
    return arguments[1] if len(arguments) > 1 and isinstance(arguments[1], dict) else {}
