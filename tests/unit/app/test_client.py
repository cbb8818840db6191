from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from app.client import Client, GatewayError


class Guarded(BaseHTTPRequestHandler):
    """Answers who calls with the right key, as the gateway does."""

    def do_GET(self):
        right = self.headers.get("Authorization") == "Bearer sk-right"
        self.send_response(200 if right else 401)
        self.end_headers()
        self.wfile.write(b"[]" if right else b'{"error": {"message": "give an API key"}}')

    def log_message(self, *_):
        pass


@pytest.fixture
def url():
    server = HTTPServer(("127.0.0.1", 0), Guarded)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_the_commands_call_with_the_key_of_the_environment(url, monkeypatch):
    monkeypatch.delenv("PEAGLE_API_KEY", raising=False)
    with pytest.raises(GatewayError, match="give an API key"):
        Client(url).call("GET", "/v1/endpoints")
    monkeypatch.setenv("PEAGLE_API_KEY", "sk-right")
    assert Client(url).call("GET", "/v1/endpoints") == []
