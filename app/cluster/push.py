"""Puts the data source, the folder and the dashboards into a Grafana, through its HTTP API."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import requests
from grafana_api.grafana_api import GrafanaClientError, GrafanaException
from grafana_api.grafana_face import GrafanaFace

from app.cluster.dashboards import FOLDER, SOURCE_UID, as_json, data_source, uid
from app.cluster.panels import DASHBOARDS

OLDEST = 10  # major version of Grafana whose dashboards the SDK writes


class GrafanaError(Exception):
    """Grafana could not be filled; the message says what to change."""


def push(url: str, token: str, prometheus: str) -> list[tuple[str, str]]:
    """Create or update everything; a second push changes nothing.

    Args:
        url: Grafana's address.
        token: a service account's, with the role Admin (data sources) or Editor with data source rights.
        prometheus: Prometheus's address, as Grafana reaches it.

    Returns:
        What is there now, and whether it was created or updated.

    Raises:
        GrafanaError: wrong address, token, rights or version.
    """
    grafana = _connect(url, token)
    with _explained(url):
        done = [(f"data source {SOURCE_UID}", _source(grafana, prometheus)), (f"folder {FOLDER}", _folder(grafana))]
        for title in DASHBOARDS:
            known = _found(grafana.dashboard.get_dashboard, uid(title))
            board = {"dashboard": json.loads(as_json(title)), "folderUid": FOLDER, "overwrite": True}
            grafana.dashboard.update_dashboard(board)
            done.append((f"dashboard {title}", "updated" if known else "created"))
    return done


def _connect(url: str, token: str) -> Any:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise GrafanaError(f"{url!r} is no address; give one such as http://localhost:3000")
    prefix = parts.path.strip("/") + "/" if parts.path.strip("/") else ""
    grafana = GrafanaFace(auth=token, host=parts.hostname, port=parts.port, protocol=parts.scheme, url_path_prefix=prefix)
    with _explained(url):
        version = str(grafana.api.GET("/health").get("version", ""))
    if not version.split(".")[0].isdigit() or int(version.split(".")[0]) < OLDEST:
        raise GrafanaError(f"Grafana at {url} is version {version or 'unknown'}; these dashboards need {OLDEST} or newer")
    return grafana


@contextmanager
def _explained(url: str) -> Iterator[None]:
    try:
        yield
    except GrafanaClientError as error:
        if error.status_code == 401:
            raise GrafanaError(f"Grafana at {url} does not know the token: give one of a service account (GRAFANA_TOKEN)") from None
        if error.status_code == 403:
            raise GrafanaError(f"the token may not do this in Grafana at {url}: its service account needs the role Admin") from None
        raise GrafanaError(f"Grafana at {url}: {error.message}") from None
    except GrafanaException as error:
        raise GrafanaError(f"Grafana at {url}: {error.message}") from None
    except requests.exceptions.JSONDecodeError:
        raise GrafanaError(f"what answers at {url} is no Grafana") from None
    except requests.exceptions.RequestException as error:
        raise GrafanaError(f"no Grafana answers at {url} ({type(error).__name__})") from None


def _found(ask: Any, name: str) -> Any:
    """What ``ask`` gets, or None where there is nothing of that name."""
    try:
        return ask(name)
    except GrafanaClientError as error:
        if error.status_code == 404:
            return None
        raise


def _source(grafana: Any, prometheus: str) -> str:
    wanted = data_source(prometheus)
    if any(one["uid"] == SOURCE_UID for one in grafana.datasource.list_datasources()):
        grafana.api.PUT(f"/datasources/uid/{SOURCE_UID}", json=wanted)
        return "updated"
    grafana.datasource.create_datasource(wanted)
    return "created"


def _folder(grafana: Any) -> str:
    if _found(grafana.folder.get_folder, FOLDER):
        return "there"
    grafana.folder.create_folder(FOLDER, uid=FOLDER)
    return "created"
