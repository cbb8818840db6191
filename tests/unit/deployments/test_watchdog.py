"""An engine that hangs is told from one that is loaded, idle, or ahead of a slow client."""

import subprocess
import sys
import time

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
import multiprocessing, time
from deployments.watchdog import end_with_parent
def engine():
    end_with_parent()
    time.sleep(300)
if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=engine)
    child.start()
    print(child.pid, flush=True)
    time.sleep(300)
"""


def test_an_engine_ends_with_the_replica_that_started_it(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    engine = psutil.Process(int(parent.stdout.readline()))
    time.sleep(8)  # spawned processes import first
    parent.kill()
    psutil.wait_procs([engine], timeout=20)
    assert not engine.is_running() or engine.status() == psutil.STATUS_ZOMBIE
