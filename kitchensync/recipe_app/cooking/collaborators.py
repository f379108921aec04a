"""The parts of the app, so that a test can build it with its own clocks, folders and database."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from kitchensync.recipe_app.cooking.judging import Judge
from kitchensync.recipe_app.exchange.desk_batches import DeskBatches
from kitchensync.recipe_app.exchange.folders import Folders
from kitchensync.recipe_app.exchange.intake import Intake
from kitchensync.recipe_app.film_jobs import FilmJobs
from kitchensync.recipe_app.live.live_pictures import LivePictures
from kitchensync.recipe_app.people.accounts import Accounts
from kitchensync.recipe_app.people.attempts import Bucket
from kitchensync.recipe_app.people.quotas import Quotas
from kitchensync.recipe_app.people.visitors import Visitors
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.recipe_app.store.shelf import Shelf

if TYPE_CHECKING:  # most of the app needs none of its imports
    from kitchensync.capture.station import Station


@dataclass(frozen=True)
class Collaborators:
    """The parts of a running app; `capture` is None if the app runs without a rig."""

    records: AppRecords
    accounts: Accounts
    intake: Intake
    folders: Folders
    shelf: Shelf
    bucket: Bucket
    visitors: Visitors
    quotas: Quotas
    judge: Judge
    films: FilmJobs = field(default_factory=FilmJobs)
    "Makes small videos for the browser."
    pictures: LivePictures = field(default_factory=LivePictures)
    "Has the newest frames of running recordings."
    batches: DeskBatches = field(default_factory=partial(DeskBatches, lambda: False))
    "Runs the desk's batch actions."
    cards: DeskBatches = field(default_factory=partial(DeskBatches, lambda: False))
    "Makes session cards, also while other kitchens record."
    film_key: bytes = field(default_factory=partial(secrets.token_bytes, 32))
    "Key that signs the addresses of videos, new at each start of the app."
    capture: Station | None = None
    watch: Station | None = None
    "Reports the health of all recordings, including those started elsewhere."
    hosts: frozenset[str] = field(default_factory=frozenset)
    "Allowed host names and addresses besides loopback."
    demo: dict[str, str] | None = None
    "Pseudonym and PIN of the guided tour's person."
    ca_file: bytes | None = None
    "The certificate of the app's own authority, for tablets to install."
    starting: threading.Lock = field(default_factory=threading.Lock)
    "Held while devices are started, up to half a minute."
    ending: threading.Lock = field(default_factory=threading.Lock)
    "Held while withdrawn recordings are ended, up to half a minute."
    destroying: threading.Lock = field(default_factory=threading.Lock)
    "Held while withdrawn recordings are destroyed: minutes if a store does not answer."


def collaborators(
    records: AppRecords,
    folders: Folders,
    shelf: Shelf,
    *,
    clock_id: str = "",
    key: bytes = b"",
    capture: Station | None = None,
    watch: Station | None = None,
    hosts: frozenset[str] = frozenset(),
    demo: dict[str, str] | None = None,
    ca_file: bytes | None = None,
) -> Collaborators:
    """Build the parts of the app; without a `key` only signatures of this process are valid."""
    accounts = Accounts(records, demo=demo is not None)
    return Collaborators(
        records=records,
        accounts=accounts,
        visitors=Visitors(accounts),
        quotas=Quotas(records.now_ns),
        intake=Intake(records, folders, clock_id=clock_id, key=key or secrets.token_bytes(32)),
        folders=folders,
        shelf=shelf,
        bucket=Bucket(60, records.now_ns),
        judge=Judge(records),
        films=FilmJobs(partial(_is_recording, folders, capture or watch)),
        batches=DeskBatches(partial(_is_recording, folders, capture or watch)),
        capture=capture,
        watch=watch,
        hosts=hosts,
        demo=demo,
        ca_file=ca_file,
    )


def _is_recording(folders: Folders, watch: Station | None) -> bool:
    """Return whether a recorder that is not known to have stopped records into the data folder."""
    live = [name for name in folders.running() if folders.state(name) == "recording"]
    return any(watch is None or watch.report(name).get("alarm") != "stopped" for name in live)
