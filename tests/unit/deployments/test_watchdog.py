"""An engine that hangs is told from one that is loaded, idle, or ahead of a slow client."""

import subprocess
import sys

import psutil
import pytest

from deployments.watchdog import stalled_s


@pytest.mark.parametrize(
    ("stepped", "oldest", "newest", "busy", "stalled"),
    [
        (99, 20, 50, True, 1),  # loaded: it steps
        (30, 20, 20, True, 70),  # no step for 70 s while it has requests
        (30, None, None, False, 0),  # idle
        (30, None, None, True, 0),  # its last request was aborted, which no step tells
        (30, 95, 95, True, 5),  # ... and one came since
        (30, 35, 35, False, 65),  # a request came and it never stepped again
        (30, 10, 95, False, 5),  # one came just now
        (30, 10, 10, False, 0),  # answered long ago; its client reads slowly
    ],
)
def test_how_long_an_engine_has_stalled(stepped, oldest, newest, busy, stalled):
    assert stalled_s(100, stepped, oldest, newest, busy=busy) == stalled


PARENT = """
import multiprocessing, os, sys, time
from deployments.watchdog import end_with_parent
def engine(when):
    print("importing", flush=True)
    starter = multiprocessing.parent_process().pid
    while when == "importing" and os.getppid() == starter:
        time.sleep(0.05)
    end_with_parent()
    print("watching", flush=True)
    time.sleep(300)
if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=engine, args=sys.argv[1:])
    child.start()
    print(child.pid, flush=True)
    time.sleep(300)
"""


@pytest.mark.parametrize("when", ["running", "importing"])
def test_an_engine_ends_with_the_replica_that_started_it(tmp_path, when):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    parent = subprocess.Popen([sys.executable, str(script), when], stdout=subprocess.PIPE, text=True)
    engine = psutil.Process(int(parent.stdout.readline()))
    while parent.stdout.readline() != ("watching\n" if when == "running" else "importing\n"):
        assert parent.poll() is None
    parent.kill()
    psutil.wait_procs([engine], timeout=20)
    assert not engine.is_running() or engine.status() == psutil.STATUS_ZOMBIE
