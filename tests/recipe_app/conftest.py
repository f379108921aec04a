"""A data folder with a running recording, and the app served over it with a clock that the test sets."""

from __future__ import annotations

import contextlib
import functools
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from databases import emptied, postgresql

from recipe_app.app import create_app
from recipe_app.collaborators import Collaborators
from recipe_app.sessions import Sessions
from recipe_app.shelf import Shelf
from recipe_app.store.database import Database, open_database

RECIPES = Path(__file__).resolve().parents[2] / "examples" / "recipes"


@contextlib.contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an app on a free loopback port by a real server; yield its address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@dataclass
class Kitchen:
    """The app's world in a test: folders, a clock, clients."""

    data: Path
    recipes: Path = RECIPES
    now_ns: int = 1_000_000_000_000
    token: str | None = None
    opened: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def client(self) -> httpx.Client:
        """A client of a freshly started app over the same folders."""
        sessions = Sessions(self.data, utc_ns=lambda: 1_790_000_000_000_000_000)
        collaborators = Collaborators(sessions, Shelf(self.recipes), lambda: self.now_ns)
        url = self.opened.enter_context(served(create_app(collaborators, token=self.token)))
        return self.opened.enter_context(httpx.Client(base_url=url, trust_env=False, timeout=30))

    @functools.cached_property
    def one_client(self) -> httpx.Client:
        """The same client at every call."""
        return self.client()

    def record(self, name: str, state: str = "recording") -> Path:
        """Make a recording's folder as capture does, or change its state."""
        path = self.data / name
        path.mkdir(exist_ok=True)
        manifest = {"schema": "recording/1", "recording": name, "state": state, "started": {"utc_ns": 5}}
        (path / "recording.json").write_text(json.dumps(manifest))
        return path

    def manifest(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.data / name / "recording.json").read_text())
        return found

    def events(self, path: Path, writer: str = "tablet") -> list[dict[str, Any]]:
        """The lines of an event file, read without the storage code."""
        return [json.loads(line) for line in (path / "events" / f"{writer}.jsonl").read_text().splitlines()]


@pytest.fixture
def kitchen(tmp_path: Path) -> Iterator[Kitchen]:
    data = tmp_path / "recordings"
    data.mkdir()
    made = Kitchen(data)
    made.record("soup_1")
    with made.opened:
        yield made


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    with postgresql() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty database of either kind."""
    if request.param == "sqlite":
        opened = open_database(tmp_path / "app" / "app.db")
    else:
        opened = open_database(emptied(request.getfixturevalue("postgresql_server")))
    yield opened
    opened.close()
