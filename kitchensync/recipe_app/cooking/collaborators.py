"""What the app is built from, so that a test can give it clocks, folders and a database of its own."""

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
    """Memory, accounts, recipes and folders; `capture` is None where the app runs without a rig."""

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
    "Who makes small films for the browser."
    pictures: LivePictures = field(default_factory=LivePictures)
    "Who keeps the newest pictures of what is being recorded."
    batches: DeskBatches = field(default_factory=partial(DeskBatches, lambda: False))
    "Who does what the desk asks for with many recordings."
    cards: DeskBatches = field(default_factory=partial(DeskBatches, lambda: False))
    "Who makes the cards of what was recorded, while other kitchens record too."
    film_key: bytes = field(default_factory=partial(secrets.token_bytes, 32))
    "What seals the addresses of films; another one each time the app starts."
    capture: Station | None = None
    watch: Station | None = None
    "Who knows how recordings are, those that somebody else began too."
    hosts: frozenset[str] = field(default_factory=frozenset)
    "Names and addresses under which the app may be asked, besides loopback."
    demo: dict[str, str] | None = None
    "What the guided tour may tell: pseudonym and PIN of its person."
    ca_file: bytes | None = None
    "The certificate of our own authority, for tablets to install."
    starting: threading.Lock = field(default_factory=threading.Lock)
    "Held while devices are being started, which takes them half a minute at most."
    ending: threading.Lock = field(default_factory=threading.Lock)
    "Held while what was withdrawn is being ended, which takes as long."
    destroying: threading.Lock = field(default_factory=threading.Lock)
    "Held while what was withdrawn is being destroyed: a store that does not answer can take minutes."


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
    """Join the parts of the app; without a `key` only what this process signs is believed."""
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
    """Return whether something is being recorded into the data folder by a recorder that is not known to be gone."""
    live = [name for name in folders.running() if folders.state(name) == "recording"]
    return any(watch is None or watch.report(name).get("alarm") != "stopped" for name in live)
