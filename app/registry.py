"""The endpoint registry: SQLite, one writer, every change one transaction."""

import sqlite3
from pathlib import Path

from app.endpoint import Endpoint


class Registry:
    """Endpoints by name; what it returns after a restart is what was last put."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("CREATE TABLE IF NOT EXISTS endpoints (name TEXT PRIMARY KEY, endpoint TEXT NOT NULL)")

    def put(self, endpoint: Endpoint) -> Endpoint:
        """Insert or replace."""
        self._database.execute("REPLACE INTO endpoints VALUES (?, ?)", (endpoint.name, endpoint.model_dump_json()))
        return endpoint

    def get(self, name: str) -> Endpoint | None:
        """The endpoint called ``name``."""
        row = self._database.execute("SELECT endpoint FROM endpoints WHERE name = ?", (name,)).fetchone()
        return Endpoint.model_validate_json(row[0]) if row else None

    def all(self) -> list[Endpoint]:
        """Every endpoint, by name."""
        rows = self._database.execute("SELECT endpoint FROM endpoints ORDER BY name").fetchall()
        return [Endpoint.model_validate_json(row[0]) for row in rows]

    def remove(self, name: str) -> None:
        """Forget ``name``."""
        self._database.execute("DELETE FROM endpoints WHERE name = ?", (name,))
