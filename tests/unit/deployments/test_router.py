import asyncio

from ray.serve.request_router import PendingRequest

from deployments.router import SoonestFinish


def test_full_replicas_are_asked_again_after_a_pause():
    async def context():
        router = object.__new__(SoonestFinish)  # Serve makes them with what only a running cluster has
        router.initialize_state()
        pending = PendingRequest(args=[], kwargs={}, metadata=None)
        await router.choose_replicas([], pending)
        return pending.routing_context

    assert asyncio.run(context()).should_backoff  # where it is unset, Serve asks without end and a core is lost
