"""How many replicas: a queue that stays starts some, one that drains does not, and quiet stops them."""

import pytest

from deployments.autoscaling import Demand, QueueDepthScaler, Rates, ScalingSettings

SETTINGS = ScalingSettings(target=4, up_after_s=5, down_after_s=60, cold_start_s=30)


def run(scaler, seconds, start=0, **demand):
    """One decision a second; replicas follow at once."""
    replicas = demand.pop("replicas", 1)
    for second in range(start, start + seconds):
        replicas = scaler.decide(Demand(**{"queued": 0, "waiting": 0, "running": 0} | demand, replicas=replicas, ready=replicas), second).replicas
    return replicas


def test_a_lasting_queue_starts_replicas_and_a_short_one_none():
    assert run(QueueDepthScaler(SETTINGS, 1, 8), 4, queued=20, running=4) == 1
    assert run(QueueDepthScaler(SETTINGS, 1, 8), 20, queued=20, running=4) == 6
    assert run(QueueDepthScaler(SETTINGS, 1, 3), 20, queued=20, running=4) == 3


def test_a_queue_that_drains_before_a_replica_would_start_starts_none():
    assert run(QueueDepthScaler(SETTINGS, 1, 8), 20, queued=20, running=4, finished_per_s=2) == 1  # 10 s
    assert run(QueueDepthScaler(SETTINGS, 1, 8), 20, queued=20, running=4, finished_per_s=0.1) == 6  # 200 s
    assert run(QueueDepthScaler(SETTINGS, 1, 8), 20, queued=20, running=4, finished_per_s=2, arrived_per_s=2) == 6  # it stays


def test_rates_are_what_came_and_what_went():
    rates = Rates()
    for second in range(20):
        finished, arrived = rates.add(second, finished=2 * second, held=5 + second)
    assert (finished, arrived) == (2, 3)
    assert rates.add(20, finished=0, held=0) == (0, 0)  # a replica left: counted anew


def test_replicas_stop_only_after_a_long_quiet():
    scaler = QueueDepthScaler(SETTINGS, 1, 8)
    assert run(scaler, 30, queued=20, running=4) == 6
    assert run(scaler, 50, start=30, replicas=6) == 6
    assert run(scaler, 30, start=80, replicas=6) == 1


def test_a_moment_of_quiet_stops_nothing():
    scaler = QueueDepthScaler(SETTINGS, 1, 8)
    run(scaler, 30, queued=20, running=4)
    for start in range(30, 300, 20):
        run(scaler, 5, start=start, running=24, replicas=6)
        assert run(scaler, 15, start=start + 5, replicas=6) == 6


def test_to_none_and_back():
    scaler = QueueDepthScaler(SETTINGS, 0, 8)
    assert run(scaler, 70) == 0
    assert scaler.decide(Demand(queued=1, waiting=0, running=0, replicas=0, ready=0), 71).replicas == 1  # at once


def test_what_starts_is_let_start():
    scaler = QueueDepthScaler(SETTINGS, 0, 8)
    starting = {"queued": 0, "waiting": 0, "running": 0, "replicas": 1}
    assert all(scaler.decide(Demand(**starting, ready=0), second).replicas == 1 for second in range(300))
    assert run(scaler, 70, start=300) == 0


def test_the_cold_start_is_learned():
    scaler = QueueDepthScaler(SETTINGS, 1, 8)
    for second in range(200):
        ready = 1 if second < 100 else 2
        scaler.decide(Demand(queued=40, waiting=0, running=4, replicas=2, ready=ready), second)
    assert scaler.cold_start_s == pytest.approx(65)  # half way from 30 to 100


def test_fewer_than_the_least_are_never_kept():
    assert run(QueueDepthScaler(SETTINGS, 2, 8), 200, replicas=5) == 2
