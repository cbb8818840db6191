from pathlib import Path

from deployments import cpu
from drafter.engine import preloads


def test_the_preloads_exist_and_hold_openmp():
    libraries = preloads()
    assert all(Path(library).is_file() for library in libraries)
    assert any("libiomp5" in library for library in libraries), "intel-openmp of the lock is not installed"


def test_a_machine_too_small_is_told_what_it_lacks(monkeypatch):
    monkeypatch.setattr(cpu.os, "sched_getaffinity", lambda _: {0})
    assert "needs 2 cores" in cpu.too_small()
    monkeypatch.setattr(cpu.os, "sched_getaffinity", lambda _: {0, 1})
    assert "need 4003 GiB" in cpu.too_small(endpoints=1000)
