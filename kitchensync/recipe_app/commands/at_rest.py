"""The app's database for commands that use it without serving, also while the app runs."""

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
    """Return the database of the app over a data folder."""
    return database or data / APP_FOLDER / "app.db"


@contextlib.contextmanager
def memory(data: Path, database: str | None) -> Iterator[Collaborators]:
    """Open the database of an app that this user has started here before.

    A database from elsewhere is refused, since it could list folders to destroy. Raises BadSetup, BadInstallation.
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
    """The app's database over a folder of recordings, for a withdrawal; empty without an app."""

    data: Path
    place: Path | str
    tools: Collaborators | None
    key: bytes = b""

    def recordings_of(self, person: str) -> list[Path]:
        """Return the folders of a person's recordings from the database, whatever their manifests state."""
        if self.tools is None:
            return []
        folders = []
        for name in app_withdrawals.folders_of(self.tools.records, person):
            with contextlib.suppress(NotFound):
                folders.append(self.tools.folders.path(name))
        return folders

    def note(self, folders: list[str], person: str) -> ToDestroy:
        """Log what a withdrawal covers before anything is destroyed."""
        if self.tools is None:
            return ToDestroy()
        return app_withdrawals.note(self.data / APP_FOLDER, self.tools.records, folders, person, key=self.key)

    def keep_proof(self, places: list[WithdrawnPlace]) -> None:
        """Save the proof of what was destroyed at each place, which the desk's log shows."""
        if self.tools is not None:
            app_withdrawals.note_done(self.data / APP_FOLDER, places)

    def destroy(self, what: ToDestroy, person: str) -> list[WithdrawnPlace]:
        """Destroy the data in the database, backups and tablets."""
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
    """Open the app's database over this data folder, if an app was ever started there."""
    place = place_of(data, database)
    if isinstance(place, Path) and not place.is_file():
        yield MemoryBeside(data, place, None)
        return
    with memory(data, database) as tools:
        yield MemoryBeside(data, place, tools, own_key(data / APP_FOLDER))
