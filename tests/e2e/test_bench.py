"""``peagle bench run`` and ``report``, on the session's engines as peers: open loop, an objective, the processes watched."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import yaml
from typer.testing import CliRunner

from loadtests.cli import bench
from tests.conftest import P_EAGLE, PLAIN


@pytest.fixture(scope="module")
def report(server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    prompts = folder / "mine.jsonl"
    prompts.write_text("".join(json.dumps({"prompt": f"Say the number {number}."}) + "\n" for number in range(8)))
    experiment = folder / "mine.yaml"
    contenders = [{"label": name, "method": method, "url": server.url, "model": name} for name, method in ((P_EAGLE, "p_eagle"), (PLAIN, "none"))]
    experiment.write_text(yaml.safe_dump({
        "name": "mine", "contenders": contenders, "datasets": [str(prompts), "long-code"], "rates": [2.0], "requests": 4, "max_tokens": 8,
        "repetitions": 1, "slo": {"ttft_s": 60, "tpot_s": 10}, "watch_s": 1,
    }))  # fmt: skip
    for _ in range(2):  # the second goes on where the first ended, and so measures nothing
        done = CliRunner().invoke(bench, ["run", str(experiment), "--out", str(folder), "--url", server.url])
        assert done.exit_code == 0, done.output
    return folder / "mine"


def test_every_cell_is_measured_once_and_answered(report):
    results = [json.loads(line) for line in (report / "results.jsonl").read_text().splitlines()]
    cells = sorted((one["label"], one["dataset"]) for one in results)
    assert cells == [(P_EAGLE, "long-code"), (P_EAGLE, "mine"), (PLAIN, "long-code"), (PLAIN, "mine")]
    assert {(one["answered"], one["requests"], one["goodput"] > 0) for one in results} == {(4, 4, True)}


def test_the_report_tells_ratios_capacity_and_what_the_processes_held(report):
    text = (report / "report.md").read_text()
    assert "## mine" in text
    assert "## long-code" in text
    assert "| requests/s | none | P-EAGLE | P-EAGLE / EAGLE-3 | P-EAGLE / none |" in text
    assert "| P-EAGLE | 2 |" in text  # no rate broke the objective
    gateways = next(line for line in text.splitlines() if line.startswith("| gateways"))
    engines = next(line for line in text.splitlines() if line.startswith("| engines"))
    assert ", 0 |" not in gateways
    assert ", 0 |" not in engines
    assert re.search(r"\| placement groups \| (\d+), \1, \1 \|", text)
    assert "<img" in (report / "report-mine.html").read_text()


def test_a_terminated_run_takes_its_peers_with_it(tmp_path):
    started = tmp_path / "peer.pid"
    peer = f"import os, time; open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    experiment = tmp_path / "cut.yaml"
    contender = {"label": "peer", "url": "http://127.0.0.1:9", "model": "target", "command": [sys.executable, "-c", peer]}
    experiment.write_text(yaml.safe_dump({"name": "cut", "contenders": [contender], "datasets": ["chat"], "concurrency": [1]}))
    run = subprocess.Popen([Path(sys.executable).with_name("peagle"), "bench", "run", str(experiment), "--out", str(tmp_path)])
    while not (started.exists() and started.read_text()):
        assert run.poll() is None
        time.sleep(0.1)
    run.send_signal(signal.SIGTERM)
    assert run.wait(timeout=60) == 128 + signal.SIGTERM
    assert not psutil.pid_exists(int(started.read_text()))
