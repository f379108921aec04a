"""A data folder with a running recording, and the app served over it with a clock that the test sets."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from argon2 import PasswordHasher
from browser import Tablet, chromium, on_screen
from databases import emptied, postgresql

from kitchensync.recipe_app.cooking.checklist import CONSENT_VERSION, items_for
from kitchensync.recipe_app.cooking.collaborators import Collaborators, collaborators
from kitchensync.recipe_app.exchange.folders import Folders
from kitchensync.recipe_app.people import secrets
from kitchensync.recipe_app.store.app_records import AppRecords, new_id
from kitchensync.recipe_app.store.database import Database, open_database
from kitchensync.recipe_app.store.shelf import Shelf
from kitchensync.recipe_app.web.app import create_app
from kitchensync.recipe_app.web.door.connections import BoundedServer
from kitchensync.storage.installation.key import kept_key
from kitchensync.storage.manifest import write_json

PIN, PASSWORD = "482916", "a long enough pass phrase"
RECIPES = Path(__file__).resolve().parents[2] / "kitchensync" / "examples" / "recipes"


@contextlib.contextmanager
def served(app: Any, **options: Any) -> Iterator[str]:
    """Serve an app on a free loopback port by a real server; yield its address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = BoundedServer(
            uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", **options)
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@dataclass(frozen=True)
class LiveFolders:
    """Somebody who records whatever folder says that it is being recorded."""

    kitchen: Kitchen

    def report(self, recording: str) -> dict[str, Any]:
        """Report what the manifest says, as fresh news."""
        health = Folders(self.kitchen.data).state(recording)
        return {"health": health, "reasons": [], "host_ns": self.kitchen.tools.records.now_ns()}

    def live(self, recording: str) -> dict[str, Any] | None:
        """Nothing more is known."""
        return None

    def room(self) -> list[dict[str, Any]]:
        """No recorder answers."""
        return []


@dataclass
class Kitchen:
    """The app's world in a test: folders, clocks, clients; a kitchen with a tablet and people."""

    data: Path
    database: Database
    recipes: Path = RECIPES
    now_ns: int = 1_000_000_000_000
    utc_ns: int = 1_790_000_000_000_000_000
    ticking: bool = False
    opened: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    seq: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    @functools.cached_property
    def tools(self) -> Collaborators:
        """What the app is built from."""
        records = AppRecords(
            self.database,
            now_ns=lambda: time.monotonic_ns() if self.ticking else self.now_ns,
            utc_ns=lambda: self.utc_ns,
        )
        shelf = Shelf(self.recipes, self.data / "_app" / "recipes")
        folders = Folders(self.data)
        return collaborators(records, folders, shelf, clock_id="boot-1", watch=LiveFolders(self))

    @functools.cached_property
    def url(self) -> str:
        """The address of the app, served by a real server."""
        return self.opened.enter_context(served(create_app(self.tools)))

    def serve(self, app: Any, **options: Any) -> str:
        """Serve another app for as long as this world lasts; return its address."""
        return self.opened.enter_context(served(app, **options))

    def client(self, **headers: str) -> httpx.Client:
        """A client without any rights, or with those of its headers."""
        made = httpx.Client(base_url=self.url, trust_env=False, verify=False, timeout=60, headers=headers)
        return self.opened.enter_context(made)

    @functools.cached_property
    def place(self) -> str:
        """The id of the kitchen."""
        made = new_id(self.utc_ns)
        self.tools.records.note("kitchen", made, {"name": "Lab kitchen"}, actor="")
        return made

    @functools.cached_property
    def basil(self) -> str:
        """The id of a participant, whose PIN is 482916."""
        made = self.tools.accounts.add_person("Basil", ["participant"], actor="")
        self.tools.accounts.set_pin(made, PIN, actor="")
        return made

    def pair(self, name: str = "Tablet") -> tuple[str, str]:
        """Pair a tablet; return its id and its token."""
        code = self.tools.accounts.pairing_code(self.place, actor="")
        return self.tools.accounts.pair(code, name, secure=True)

    def at_tablet(self, person: str, name: str = "Tablet") -> httpx.Client:
        """Somebody who is signed in on a paired tablet of their own, by the PIN that everybody has here."""
        device, token = self.pair(name)
        login = self.tools.accounts.sign_in(person, "pin", PIN, device=device, desk=False)
        return self.client(**{"authorization": f"Bearer {token}", "x-kitchensync-login": login})

    def second_tablet(self) -> httpx.Client:
        """Another paired tablet in the same kitchen, on which Basil has signed in too."""
        return self.at_tablet(self.basil, "Tablet by the sink")

    @functools.cached_property
    def tablet(self) -> httpx.Client:
        """A paired tablet on which Basil has signed in."""
        return self.at_tablet(self.basil)

    def signed_in(self, pseudonym: str) -> httpx.Client:
        """Another participant, signed in on another paired tablet."""
        person = self.tools.accounts.add_person(pseudonym, ["participant"], actor="")
        self.tools.accounts.set_pin(person, PIN, actor="")
        return self.at_tablet(person, "Tablet by the sink")

    def desk(self, role: str) -> httpx.Client:
        """Somebody with a role, signed in at the desk."""
        person = self.tools.accounts.add_person(f"{role} {next(self.seq)}", [role], actor="")
        self.tools.accounts.accept_invite(self.tools.accounts.invite(person, actor=""), PASSWORD)
        login = self.tools.accounts.sign_in(person, "password", PASSWORD, device="", desk=True)
        return self.client(**{"x-kitchensync-login": login})

    def choose(self, **more: Any) -> dict[str, Any]:
        """Begin a recording on the tablet; return its bundle."""
        body = {"op_id": new_id(self.utc_ns), "recipe": "tea_and_toast", "seed": 3, **more}
        answer = self.tablet.post("/api/v1/recordings", json=body)
        assert answer.status_code == 200, answer.text
        bundle: dict[str, Any] = answer.json()
        return bundle

    def checked(self) -> str:
        """Begin a recording and go through its checklist, that for devices; return its id."""
        recording = str(self.choose()["recording"])
        self.post(
            self.operation(recording, "consent", {"version": CONSENT_VERSION, "accepted": True}),
            *(
                self.operation(recording, "check", {"item": item.name, "checked": True})
                for item in items_for(devices=True)
            ),
            self.operation(recording, "checked", {"version": "1", "confirmed_by": "Clove"}),
        )
        return recording

    def agree(self, recording: str, *scopes: str, accepted: bool = True, **more: str) -> None:
        """Answer the form of consent on the tablet."""
        body = {"version": CONSENT_VERSION, "accepted": accepted, "scopes": list(scopes), **more}
        (receipt,) = self.post(self.operation(recording, "consent", body))
        assert "error" not in receipt, receipt

    def operation(self, recording: str, kind: str, body: dict[str, Any], **more: Any) -> dict[str, Any]:
        """An operation as a tablet sends it."""
        fields = {"op_id": new_id(self.utc_ns), "seq": next(self.seq), "recording": recording}
        return {**fields, "actor": self.basil, "kind": kind, "body": body, **more}

    def clock(self) -> dict[str, Any]:
        """What the app answers a tablet that asks for the capture clock."""
        answer = self.tablet.get("/api/v1/time").json()
        return {key: answer[key] for key in ("host_ns", "clock_id", "signature")}

    def post(self, *operations: dict[str, Any]) -> list[dict[str, Any]]:
        """Send operations; return their receipts."""
        answer = self.tablet.post("/api/v1/ops", json={"operations": operations})
        assert answer.status_code == 200, answer.text
        receipts: list[dict[str, Any]] = answer.json()["receipts"]
        return receipts

    def record(self, name: str, state: str = "recording") -> Path:
        """Make a recording's folder as capture does, or change its state."""
        path = self.data / name
        path.mkdir(exist_ok=True)
        manifest = {
            "schema": "recording/1",
            "recording": name,
            "state": state,
            "started": {"utc_ns": self.utc_ns},
        }
        write_json(path / "recording.json", manifest)
        return path

    def manifest(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.data / name / "recording.json").read_text())
        return found

    def events(self, path: Path, writer: str = "tablet") -> list[dict[str, Any]]:
        """The lines of an event file, read without the storage code."""
        return [json.loads(line) for line in (path / "events" / f"{writer}.jsonl").read_text().splitlines()]


@pytest.fixture(autouse=True, scope="session")
def true_hasher() -> Iterator[PasswordHasher]:
    """Hash passwords and PINs at the least cost in all tests of the app; give the hasher that the app has."""
    true, cheap = secrets._HASHER, PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "_HASHER", cheap)
        patch.setattr(secrets, "_DUMMY", cheap.hash("nobody's"))
        yield true


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an app's database with every table and no row, made once."""
    path = tmp_path_factory.mktemp("empty") / "app.db"
    open_database(path, bytes(32)).close()
    return path


def opened_copy(empty_database: Path, path: Path) -> Database:
    """Copy an empty database and open it."""
    path.parent.mkdir(parents=True, mode=0o700)
    shutil.copy(empty_database, path)
    return open_database(path)


@pytest.fixture
def kitchen(tmp_path: Path, empty_database: Path) -> Iterator[Kitchen]:
    database = opened_copy(empty_database, tmp_path / "recordings" / "_app" / "app.db")
    with opened_kitchen(database, tmp_path / "recordings") as made:
        yield made


@contextlib.contextmanager
def opened_kitchen(database: Database, data: Path) -> Iterator[Kitchen]:
    made = Kitchen(data, database)
    made.record("soup_1")
    with made.opened:
        yield made
    made.tools.pictures.close()
    made.tools.films.close()
    made.tools.cards.close()
    database.close()


@pytest.fixture
def kitchen_on_postgresql(tmp_path: Path, postgresql_server: str) -> Iterator[tuple[Kitchen, str]]:
    """The app's world over PostgreSQL, and the address of that."""
    data, address = tmp_path / "recordings", emptied(postgresql_server)
    (data / "_app").mkdir(parents=True)
    with opened_kitchen(open_database(address, kept_key(data / "_app")), data) as made:
        yield made, address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for the tests of a file."""
    with chromium() as started:
        yield started


@pytest.fixture
def tablet(kitchen: Any, browser: Any) -> Iterator[Tablet]:
    """A tablet in front of the recipes."""
    with on_screen(kitchen, browser) as made:
        yield made


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    with postgresql() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty database of either kind."""
    if request.param == "sqlite":
        opened = opened_copy(request.getfixturevalue("empty_database"), tmp_path / "app" / "app.db")
    else:
        opened = open_database(emptied(request.getfixturevalue("postgresql_server")), bytes(32))
    yield opened
    opened.close()
