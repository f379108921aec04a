"""The app's memory for commands that work on it without serving, beside a running app or alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from recipe_app.cooking.collaborators import Collaborators, collaborators
from recipe_app.errors import BadSetup
from recipe_app.exchange.folders import Folders
from recipe_app.store.app_records import AppRecords
from recipe_app.store.database import open_database
from recipe_app.store.keys import kept_key
from recipe_app.store.shelf import OWN_RECIPES, Shelf
from recipe_app.web.serve import APP_FOLDER, clock_id
from sensors.host_clock import host_ns, utc_anchor


def place_of(data: Path, database: str | None) -> Path | str:
    """Return where the app over this data folder keeps its memory."""
    return database or data / APP_FOLDER / "app.db"


@contextlib.contextmanager
def memory(data: Path, database: str | None) -> Iterator[Collaborators]:
    """Open the memory of an app that was started here before. Raises BadSetup."""
    place = place_of(data, database)
    if isinstance(place, Path) and not place.is_file():
        raise BadSetup(f"{place}: the app was never started here; give its --data or --database")
    opened = open_database(place)
    try:
        records = AppRecords(opened, now_ns=host_ns, utc_ns=lambda: utc_anchor().utc_ns)
        shelf = Shelf(OWN_RECIPES, data / APP_FOLDER / "recipes")
        key = kept_key(data / APP_FOLDER)
        yield collaborators(records, Folders(data), shelf, clock_id=clock_id(), key=key)
    finally:
        opened.close()
