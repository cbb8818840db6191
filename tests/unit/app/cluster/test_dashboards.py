"""Grafana's dashboards: what is written is what Grafana's own types hold, and a push fills a Grafana."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import dashboard as models
from typer.testing import CliRunner

from app.cli import app
from app.cluster.dashboards import SOURCE, as_json, uid
from app.cluster.panels import DASHBOARDS
from app.cluster.push import GrafanaError, push


@pytest.mark.parametrize("title", DASHBOARDS)
def test_a_dashboard_survives_grafanas_types(title):
    register_default_plugins()
    text = json.loads(as_json(title))
    read = models.Dashboard.from_json(text)
    assert (read.uid, read.title) == (uid(title), f"peagle-serve: {title}")
    assert len(read.panels) == len(DASHBOARDS[title])
    for panel in read.panels:
        assert panel.datasource.uid == SOURCE.uid
        assert panel.description
        assert len({target.ref_id for target in panel.targets}) == len(panel.targets)


def test_charts_do_not_lie_on_each_other():
    for title in DASHBOARDS:
        places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in json.loads(as_json(title))["panels"]}
        assert len(places) == len(DASHBOARDS[title])


class Grafana(BaseHTTPRequestHandler):
    """A stand-in: the routes of Grafana's HTTP API that a push uses, as its reference describes them."""

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def handle_any(self):
        state = self.server.state
        path = self.path.removeprefix("/grafana/api")
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
        if path == "/health":
            return self.answer(200, {"database": "ok", "version": state.version})
        if self.headers.get("Authorization") != "Bearer glsa_right":
            return self.answer(401, {"message": "Invalid API key"})
        if state.forbidden and self.command != "GET":
            return self.answer(403, {"message": "You'll need additional permissions to perform this action."})
        state.calls.append((self.command, path))
        match self.command, path.split("/")[1:]:
            case "GET", ["datasources"]:
                return self.answer(200, list(state.sources.values()))
            case "POST", ["datasources"] if body["uid"] not in state.sources:
                state.sources[body["uid"]] = body
                return self.answer(200, {"id": 1, "message": "Datasource added", "datasource": body})
            case "PUT", ["datasources", "uid", name] if name in state.sources:
                state.sources[name] = body
                return self.answer(200, {"message": "Datasource updated"})
            case "GET", ["folders", name] if name in state.folders:
                return self.answer(200, state.folders[name])
            case "POST", ["folders"] if body["uid"] not in state.folders:
                state.folders[body["uid"]] = body
                return self.answer(200, body)
            case "GET", ["dashboards", "uid", name] if name in state.dashboards:
                return self.answer(200, {"dashboard": state.dashboards[name], "meta": {}})
            case "POST", ["dashboards", "db"] if body["folderUid"] in state.folders:
                name = body["dashboard"]["uid"]
                if name in state.dashboards and not body["overwrite"]:
                    return self.answer(412, {"message": "The dashboard has been changed by someone else", "status": "version-mismatch"})
                state.dashboards[name] = body["dashboard"]
                return self.answer(200, {"uid": name, "status": "success"})
            case "POST", _:
                return self.answer(409, {"message": "it exists already"})
        return self.answer(404, {"message": "Not found"})

    do_GET = do_POST = do_PUT = handle_any  # noqa: N815


@pytest.fixture
def grafana():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Grafana)
    server.state = SimpleNamespace(version="12.3.0", forbidden=False, calls=[], sources={}, folders={}, dashboards={})
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.state.url = f"http://127.0.0.1:{server.server_port}/grafana"
    yield server.state
    server.shutdown()


def test_a_push_fills_a_grafana_and_another_changes_nothing(grafana):
    first = push(grafana.url, "glsa_right", "http://prometheus:9090")
    assert {how for _, how in first} == {"created"}
    assert grafana.sources[SOURCE.uid]["url"] == "http://prometheus:9090"
    assert set(grafana.dashboards) == {uid(title) for title in DASHBOARDS}
    before = json.dumps([grafana.sources, grafana.folders, grafana.dashboards])
    again = push(grafana.url, "glsa_right", "http://prometheus:9090")
    assert {how for _, how in again} == {"updated", "there"}
    assert json.dumps([grafana.sources, grafana.folders, grafana.dashboards]) == before


@pytest.mark.parametrize(
    ("change", "token", "told"),
    [
        ({}, "glsa_wrong", "does not know the token"),
        ({"forbidden": True}, "glsa_right", "needs the role Admin"),
        ({"version": "8.5.1"}, "glsa_right", "version 8.5.1; these dashboards need 10"),
        ({"url": "http://127.0.0.1:9"}, "glsa_right", "no Grafana answers at http://127.0.0.1:9"),
        ({"url": "grafana.example"}, "glsa_right", "no address"),
    ],
)
def test_what_is_wrong_is_said(grafana, change, token, told):
    grafana.__dict__.update(change)
    with pytest.raises(GrafanaError, match=told):
        push(grafana.url, token, "http://prometheus:9090")


def test_the_command_tells_what_it_did(grafana):
    done = CliRunner().invoke(app, ["dashboards", "push", "--url", grafana.url, "--token", "glsa_right"])
    assert done.exit_code == 0
    assert "dashboard Speculation" in done.output
    wrong = CliRunner().invoke(app, ["dashboards", "push", "--url", grafana.url, "--token", "no"])
    assert wrong.exit_code == 1
    assert "does not know the token" in wrong.output.replace("\n", " ")
