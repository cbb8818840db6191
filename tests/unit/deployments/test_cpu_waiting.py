"""How a CPU engine's processes wait for each other, in vLLM's own queue."""

import inspect
import threading
import time

import pytest

pytest.importorskip("vllm")
from vllm.distributed.device_communicators.shm_broadcast import MessageQueue, SpinCondition

from deployments import cpu_waiting

PAUSE_S = 0.4


@pytest.fixture
def mended(monkeypatch):
    monkeypatch.setattr(SpinCondition, "wait", SpinCondition.wait)
    monkeypatch.setattr(SpinCondition, "_peagle_mended", False, raising=False)
    cpu_waiting.mend()


def reader_at(writer, messages):
    """What a reader gets, and the processor seconds it takes for it."""
    reader, got, taken = MessageQueue.create_from_handle(writer.export_handle(), 0), [], []

    def read():
        reader.wait_until_ready()
        began = time.thread_time()
        got.extend(reader.dequeue(timeout=30) for _ in range(messages))
        taken.append(time.thread_time() - began)

    thread = threading.Thread(target=read)
    thread.start()
    writer.wait_until_ready()
    return thread, got, taken


def write_and_pause():
    writer = MessageQueue(1, 1, max_chunk_bytes=1024)
    thread, got, taken = reader_at(writer, 2)
    writer.enqueue("a step's work")
    time.sleep(PAUSE_S)  # the other side computes
    writer.enqueue("the next one's")
    thread.join(30)
    assert got == ["a step's work", "the next one's"]
    return taken[0]


def test_a_reader_sleeps_where_vllm_spins(mended):
    assert write_and_pause() < PAUSE_S / 4


def test_vllm_still_spins():
    """When this fails, vLLM has changed: look whether the mend is still needed."""
    assert inspect.signature(SpinCondition.__init__).parameters["busy_loop_s"].default == 1


def test_no_message_is_lost(mended):
    writer = MessageQueue(1, 1, max_chunk_bytes=1024)
    thread, got, _ = reader_at(writer, 120)
    for number in range(40):  # three at once, and by the next three the reader sleeps
        for part in range(3):
            writer.enqueue((number, part))
        time.sleep(2 * cpu_waiting.SPIN_S)
    thread.join(30)
    assert got == [(number, part) for number in range(40) for part in range(3)]
