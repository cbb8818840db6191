"""The ``peagle`` command, as a user types it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.catalog import get_card
from tests.conftest import P_EAGLE


@pytest.fixture
def peagle(server):
    def run(*arguments):
        command = [str(Path(sys.executable).with_name("peagle")), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "PEAGLE_URL": server.url, "COLUMNS": "200"})

    return run


def test_the_catalog_is_listed_and_shown(peagle):
    listed = peagle("catalog", "list")
    assert listed.returncode == 0
    assert "gpt-oss-120b" in listed.stdout
    shown = peagle("catalog", "show", "gpt-oss-120b")
    assert "SM_VLLM_SPECULATIVE_CONFIG" in shown.stdout
    assert "amazon/gpt-oss-120b-p-eagle" in shown.stdout


def test_an_endpoint_is_listed_described_and_asked(peagle):
    assert "InService" in peagle("endpoints", "list").stdout
    assert '"kind": "p_eagle"' in peagle("endpoints", "describe", P_EAGLE).stdout
    whole = peagle("invoke", P_EAGLE, "Say hello.", "--max-tokens", "16")
    streamed = peagle("invoke", P_EAGLE, "Say hello.", "--max-tokens", "16", "--stream")
    assert whole.returncode == streamed.returncode == 0
    assert whole.stdout.split("\n")[0] == streamed.stdout.split("\n")[0] != ""
    assert "tokens/s" in streamed.stdout


def test_the_shipped_heads_are_verified(peagle):
    folder = get_card("smollm2-135m-instruct").head("p_eagle")
    assert "fits the target" in peagle("drafter", "verify", folder).stdout
    misfit = peagle("drafter", "verify", get_card("smollm2-135m-instruct").head("eagle3"))
    assert misfit.returncode == 1
    assert "no mask_hidden" in misfit.stdout


def test_a_deploy_that_fails_says_why_and_can_be_deleted(peagle):
    failed = peagle("deploy", "gpt-oss-20b", "--name", "toobig", "--wait")
    assert failed.returncode == 1
    assert "needs 1 GPU" in failed.stdout
    assert "Deleting" in peagle("endpoints", "delete", "toobig").stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["catalog", "show", "gpt-5"], "not in the catalog"),
        (["deploy", "smollm2-135m-instruct", "--k", "0"], "num_speculative_tokens"),
        (["endpoints", "describe", "nothing"], "does not exist"),
        (["invoke", "nothing", "hello"], "does not exist"),
        (["endpoints", "list", "--url", "http://127.0.0.1:1"], "no gateway at"),
    ],
)
def test_an_error_is_one_line(peagle, arguments, says):
    done = peagle(*arguments)
    assert done.returncode == 1
    assert says in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
