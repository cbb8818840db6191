"""A Ray and the whole application in processes of their own, for tests that break them."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import psutil

from app.client import Client, GatewayError
from app.ray_environment import ENVIRONMENT
from drafter.target import prepare_target

START = """
import json, sys, time
import ray
from ray import serve
from app.main import build
ray.init(address="local", num_cpus=8, include_dashboard=False, log_to_driver=False)
print("metrics:", ray.nodes()[0]["MetricsExportPort"], flush=True)
serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])})
serve.run(build(json.loads(sys.argv[2])), name="peagle", route_prefix="/")
while True:
    print("applications:", *serve.status().applications, flush=True)
    time.sleep(1)
"""


@contextmanager
def stack(folder, arguments="{}", port=8124, variables=None):
    """The application with ``arguments`` (JSON), its registry and log in ``folder``; environment variables further to this process's."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    if not (home / "models").exists():
        (home / "models").symlink_to(prepare_target().parent)
    environment = {**os.environ, "PEAGLE_HOME": str(home), **ENVIRONMENT, "RAY_metrics_report_interval_ms": "2000", **(variables or {})}
    with (folder / "log").open("w+") as log:
        command = [sys.executable, "-c", START, str(port), arguments]
        process = psutil.Process(subprocess.Popen(command, env=environment, stdout=log, stderr=log).pid)
        try:
            yield SimpleNamespace(url=f"http://127.0.0.1:{port}", client=Client(f"http://127.0.0.1:{port}"), log=folder / "log", process=process)
        finally:
            kill(*process.children(recursive=True), process)


def eventually(found, timeout_s=240):
    """Ask again and again until the answer is true; the last answer."""
    deadline, answer = time.monotonic() + timeout_s, None
    while time.monotonic() < deadline:
        try:
            if answer := found():
                return answer
        except GatewayError:  # refused for a moment, while a part is replaced
            pass
        time.sleep(0.5)
    raise AssertionError(f"it did not come about in {timeout_s} s; last: {answer!r}")


def locust(url, endpoint, records, users, seconds, max_tokens=48, arguments=("ChatUser",)):
    """Locust's users at an endpoint, in a process of their own."""
    options = {"host": url, "endpoint": endpoint, "users": users, "run-time": f"{seconds}s", "stop-timeout": 120,
               "max-tokens": max_tokens, "records": records, "retries": 2, "exit-code-on-error": 0}  # fmt: skip
    command = [sys.executable, "-m", "locust", "-f", "loadtests/users.py,loadtests/shapes.py", "--headless", "--only-summary"]
    command += [f"--{name}={value}" for name, value in options.items()] + [*arguments]
    return subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def processes(process, title):
    """A process's descendants whose title holds ``title``, the oldest first."""
    found = []
    for one in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it ended meanwhile
            if title in " ".join(one.cmdline()):
                found.append(one)
    return sorted(found, key=lambda one: one.create_time())


def kill(*processes):
    """kill -9 each; one that has ended already is as it should be."""
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            one.kill()
