"""An engine that hangs is told from one that is loaded, idle, or ahead of a slow client."""

import subprocess
import sys
import time

import psutil
import pytest

from deployments.watchdog import hangs


@pytest.mark.parametrize(
    ("stepped", "newest", "busy", "hung"),
    [
        (99, 50, True, False),  # loaded: it steps
        (30, 20, True, True),  # no step for 70 s while it has requests
        (30, None, False, False),  # idle
        (30, 35, False, True),  # a request came and it never stepped again
        (30, 95, False, False),  # one came just now
        (30, 10, False, False),  # answered long ago; its client reads slowly
    ],
)
def test_hanging(stepped, newest, busy, hung):
    assert hangs(100, stepped, newest, 60, busy=busy) is hung


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
