"""Ray on this one machine: started when none runs, with enough logical cores for the gateway and the engines."""

import os
import subprocess
import sys
from pathlib import Path

import ray

from app.ray_environment import ENVIRONMENT

# Ray counts logical cores, and an application that finds none free waits for ever: an endpoint takes one on a CPU machine.
MIN_LOGICAL_CORES = 8


class RayError(RuntimeError):
    """Ray could not be started; the message is its own."""


def connect() -> bool:
    """Connect to Ray, starting it if need be; whether it had to be started.

    Raises:
        RayError: it did not start.
    """
    try:
        ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
        return False
    except ConnectionError:
        cores = max(MIN_LOGICAL_CORES, len(os.sched_getaffinity(0)))
        _ray("start", "--head", f"--num-cpus={cores}", "--disable-usage-stats", "--node-ip-address=127.0.0.1")
        ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
        return True


def stop_ray() -> None:
    """Stop every Ray process of this user on this machine."""
    _ray("stop")


def _ray(*arguments: str) -> None:
    command = Path(sys.executable).with_name("ray")
    done = subprocess.run([str(command), *arguments], capture_output=True, text=True, check=False, env={**ENVIRONMENT, **os.environ})
    if done.returncode:
        raise RayError((done.stderr or done.stdout).strip()[-1000:])
