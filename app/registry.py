"""The registry: endpoints and what belongs to them, in SQLite; one writer, every change one transaction."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from app.endpoint import Endpoint

# Run once each, in order; `PRAGMA user_version` counts those that were. Add to the end, never change one.
MIGRATIONS = (
    "CREATE TABLE IF NOT EXISTS endpoints (name TEXT PRIMARY KEY, endpoint TEXT NOT NULL)",
    "CREATE TABLE records (kind TEXT NOT NULL, name TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY (kind, name))",
    # `declared` was true or false before it was what the arguments said.
    "UPDATE endpoints SET endpoint = json_set(endpoint, '$.declared', json(CASE WHEN json_extract(endpoint, '$.declared')"
    " THEN json_extract(endpoint, '$.spec') ELSE 'null' END))",
)


R = TypeVar("R", bound=BaseModel)


class Registry:
    """Endpoints by name, and other records by class and name; after a restart it returns what was last put."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode=WAL")
        (done,) = self._database.execute("PRAGMA user_version").fetchone()
        for number, migration in enumerate(MIGRATIONS[done:], start=done + 1):
            with self.transaction():
                self._database.execute(migration)
                self._database.execute(f"PRAGMA user_version = {number}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of the changes inside, or none."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    @property
    def changes(self) -> int:
        """How many rows were changed since it was opened."""
        return self._database.total_changes

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
        """Forget the endpoint called ``name``."""
        self._database.execute("DELETE FROM endpoints WHERE name = ?", (name,))

    def put_record(self, record: BaseModel) -> None:
        """Insert or replace a record, which has a ``name``."""
        name: str = record.name  # type: ignore[attr-defined]
        self._database.execute("REPLACE INTO records VALUES (?, ?, ?)", (type(record).__name__, name, record.model_dump_json()))

    def record(self, kind: type[R], name: str) -> R | None:
        """The record of that class and name."""
        row = self._database.execute("SELECT record FROM records WHERE kind = ? AND name = ?", (kind.__name__, name)).fetchone()
        return kind.model_validate_json(row[0]) if row else None

    def records(self, kind: type[R]) -> list[R]:
        """Every record of a class, by name."""
        rows = self._database.execute("SELECT record FROM records WHERE kind = ? ORDER BY name", (kind.__name__,)).fetchall()
        return [kind.model_validate_json(row[0]) for row in rows]

    def remove_record(self, kind: type[BaseModel], name: str) -> None:
        """Forget a record."""
        self._database.execute("DELETE FROM records WHERE kind = ? AND name = ?", (kind.__name__, name))
