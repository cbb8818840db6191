"""Locust's users against a server whose times are known: what is reported is what happened."""

import itertools
import json
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median

import pytest

from loadtests.bench import ROOT
from loadtests.report import read_records
from tests.stack import locust

FIRST_S, STEP_S, CHUNKS, TOKENS = 0.3, 0.1, 5, 3  # three tokens a chunk


class Known(BaseHTTPRequestHandler):
    """Streams a chat: the first text after 0.3 s, then one every 0.1 s, three tokens each."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._say({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
        time.sleep(FIRST_S)
        for number in range(CHUNKS):
            time.sleep(STEP_S if number else 0)
            self._say({"choices": [{"delta": {"content": f"w{number} "}}]})
        if "break off" not in json.dumps(body):
            self._say({"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": CHUNKS * TOKENS}})
            self._send(b"data: [DONE]\n\n")
        self._send(b"")

    def _say(self, event):
        self._send(f"data: {json.dumps(event)}\n\n".encode())

    def _send(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def url():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Known)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def run(url, folder, *arguments, users=2, seconds=5):
    records = folder / "records"
    assert locust(url, "any", records, users, seconds, arguments=arguments).wait(timeout=60) == 0
    return read_records(records)


def test_times_are_those_of_the_server(url, tmp_path):
    records = run(url, tmp_path, "ChatUser")
    assert {(one.outcome, one.chunks, one.completion_tokens) for one in records} == {("answered", CHUNKS, CHUNKS * TOKENS)}
    assert FIRST_S <= median(one.ttft_s for one in records) < FIRST_S + STEP_S  # not when a kibibyte has come, which is at the end
    assert median(one.inter_chunk_s for one in records) == pytest.approx(STEP_S, rel=0.3)
    assert median(one.tpot_s for one in records) == pytest.approx((CHUNKS - 1) * STEP_S / (CHUNKS * TOKENS - 1), rel=0.3)


def test_in_an_open_loop_requests_do_not_wait_for_answers(url, tmp_path):
    closed = run(url, tmp_path, "ChatUser", users=1)
    (tmp_path / "open").mkdir()
    opened = run(url, tmp_path / "open", "--rate=12", "ChatUser", users=1)
    assert len(opened) > 2 * len(closed)
    starts = sorted(one.start for one in opened)
    assert min(after - before for before, after in itertools.pairwise(starts)) < FIRST_S


def test_with_a_seed_the_arrivals_are_the_same(url, tmp_path):
    def gaps(name, *seed):
        (tmp_path / name).mkdir()
        starts = sorted(one.start for one in run(url, tmp_path / name, "--rate=4", *seed, "ChatUser", users=1))
        return [round(after - before, 1) for before, after in itertools.pairwise(starts)][:8]

    first, again, other = gaps("first", "--seed=1"), gaps("again", "--seed=1"), gaps("other")
    assert first == pytest.approx(again, abs=0.11)
    assert first != pytest.approx(other, abs=0.11)


def test_csv_html_and_several_processes(url, tmp_path):
    records = run(url, tmp_path, f"--csv={tmp_path / 'out'}", f"--html={tmp_path / 'out.html'}", "--processes=2", "ChatUser", users=4)
    rows = (tmp_path / "out_stats.csv").read_text()
    assert all(name in rows for name in ("TTFT,ChatUser", "TPOT,ChatUser", "inter-chunk,ChatUser"))
    assert "ChatUser" in (tmp_path / "out.html").read_text()
    assert len(records) >= 8


def test_shapes_change_how_many_users_there_are(url, tmp_path):
    records = run(url, tmp_path, "--shape=spike", "ChatUser", users=10, seconds=8)
    first = min(one.start for one in records)
    quiet, spike = (sum(low <= one.start - first < low + 1.5 for one in records) for low in (0.5, 3.5))
    assert spike > 2 * quiet


@pytest.mark.parametrize("arrivals", [("--users=3", "--spawn-rate=3"), *(("--users=1", f"--rate={rate}") for rate in (30, 50, 100))])
def test_a_file_of_prompts_is_asked_once_each_and_then_it_ends(url, tmp_path, arrivals):
    prompts, records = tmp_path / "prompts", tmp_path / "records"
    prompts.write_text("".join(json.dumps({"prompt": f"question {number}"}) + "\n" for number in range(7)))
    command = [sys.executable, "-m", "locust", "-f", "loadtests/dataset_user.py", "--headless", f"--host={url}", *arrivals, "--stop-timeout=60",
               f"--prompts={prompts}", f"--records={records}"]  # fmt: skip
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60)
    asked = [one.prompt for one in read_records(records)]
    assert len(asked) == len(set(asked)) == 7
