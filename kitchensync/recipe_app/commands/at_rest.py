"""The app's memory for commands that work on it without serving, beside a running app or alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kitchensync.recipe_app.errors import BadSetup
from kitchensync.recipe_app.exchange import app_withdrawals
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.recipe_app.store.backup import WITHDRAWALS
from kitchensync.recipe_app.store.database import open_database
from kitchensync.recipe_app.store.destruction import ToDestroy
from kitchensync.shell.host_clock import host_ns, utc_anchor
from kitchensync.storage.installation.key import own_key
from kitchensync.storage.names import APP_FOLDER
from kitchensync.storage.withdraw.withdrawal import WithdrawnPlace
from kitchensync.task_graphs.errors import NotFound

if TYPE_CHECKING:
    from kitchensync.recipe_app.cooking.collaborators import Collaborators


def place_of(data: Path, database: str | None) -> Path | str:
    """Return where the app over this data folder keeps its memory."""
    return database or data / APP_FOLDER / "app.db"


@contextlib.contextmanager
def memory(data: Path, database: str | None) -> Iterator[Collaborators]:
    """Open the memory of an app that this user started here before.

    One that came with recordings from elsewhere would name folders to destroy. Raises BadSetup, BadInstallation.
    """
    from kitchensync.recipe_app.cooking.collaborators import collaborators
    from kitchensync.recipe_app.exchange.folders import Folders
    from kitchensync.recipe_app.store.shelf import OWN_RECIPES, Shelf
    from kitchensync.recipe_app.web.serve import clock_id

    place = place_of(data, database)
    if isinstance(place, Path) and not place.is_file():
        raise BadSetup(f"{place}: the app was never started here; give its --data or --database")
    key = own_key(data / APP_FOLDER)
    opened = open_database(place, key)
    try:
        records = AppRecords(opened, now_ns=host_ns, utc_ns=lambda: utc_anchor().utc_ns)
        app_withdrawals.apply(data / APP_FOLDER, records, place)
        shelf = Shelf(OWN_RECIPES, data / APP_FOLDER / "recipes")
        yield collaborators(records, Folders(data), shelf, clock_id=clock_id(), key=key)
    finally:
        opened.close()


@dataclass(frozen=True)
class MemoryBeside:
    """The memory of the app over a folder of recordings, for a withdrawal; without an app nothing is there."""

    data: Path
    place: Path | str
    tools: Collaborators | None
    key: bytes = b""

    def recordings_of(self, person: str) -> list[Path]:
        """Return the folders in which this person cooked, whether their manifests say so or not."""
        if self.tools is None:
            return []
        found = []
        for name in app_withdrawals.folders_of(self.tools.records, person):
            with contextlib.suppress(NotFound):
                found.append(self.tools.folders.path(name))
        return found

    def note(self, folders: list[str], person: str) -> ToDestroy:
        """Note what a withdrawal is about before anything is destroyed."""
        if self.tools is None:
            return ToDestroy()
        return app_withdrawals.note(self.data / APP_FOLDER, self.tools.records, folders, person, key=self.key)

    def keep_proof(self, places: list[WithdrawnPlace]) -> None:
        """Keep what was done at each place; the log of the desk shows it."""
        if self.tools is not None:
            app_withdrawals.note_done(self.data / APP_FOLDER, places)

    def destroy(self, what: ToDestroy, person: str) -> list[WithdrawnPlace]:
        """Destroy it in database, backups and tablets."""
        if self.tools is None:
            is_open = (self.data / APP_FOLDER / WITHDRAWALS).exists()
            why = "the memory of the recipe app is no file; give its --database"
            return [WithdrawnPlace(str(self.data / APP_FOLDER), 0, "nothing", why)] if is_open else []
        own = self.data / APP_FOLDER
        return list(
            app_withdrawals.places_of(own, self.tools.records, self.place, what, person=person, key=self.key)
        )


@contextlib.contextmanager
def memory_beside(data: Path, database: str | None) -> Iterator[MemoryBeside]:
    """Open the memory of the app over this data folder, where one was ever started."""
    place = place_of(data, database)
    if isinstance(place, Path) and not place.is_file():
        yield MemoryBeside(data, place, None)
        return
    with memory(data, database) as tools:
        yield MemoryBeside(data, place, tools, own_key(data / APP_FOLDER))
