"""How far the small video of a recording is on its way to the page that waits for it."""

from __future__ import annotations

import contextlib
from pathlib import Path

from kitchensync.recipe_app.cooking.collaborators import Collaborators
from kitchensync.recipe_app.exchange.folders import is_set_aside
from kitchensync.recipe_app.film_jobs import FilmState, seconds_left
from kitchensync.recipe_app.store import tables
from kitchensync.storage.errors import StorageError
from kitchensync.storage.recording_files.kept_session_card import is_on_card
from kitchensync.task_graphs.errors import NotFound

DAY_NS = 24 * 3600 * 10**9
COPYING = ("stopping", "fetching small copies", "fetching")
"""States of a camera whose recording has ended and whose video is not here yet."""


def film_state(tools: Collaborators, folder: Path, height: int) -> FilmState:
    """Report how the small video is, and have it made where the camera's is here. Raises NotFound, StorageError.

    `state` is ready, waiting, copying, synchronizing, making, failed, or absent where no camera filmed it.
    """
    state = tools.films.state(folder, height)
    if state["state"] != "none":
        return state
    if (on_its_way := _before_it_is_here(tools, folder)) is not None:
        return on_its_way
    tools.films.ask(folder, height)
    return tools.films.state(folder, height)


def _before_it_is_here(tools: Collaborators, folder: Path) -> FilmState | None:
    """Report the way of the camera's video to this computer; None once it is here."""
    manifest = tools.folders.known_manifest(folder.name)
    is_here = any(folder.glob("*/*.MP4"))
    if not is_here and "gopro" not in {device["kind"] for device in manifest.get("devices", {}).values()}:
        return {"state": "absent"}
    if manifest["state"] == "recording":
        return {"state": "waiting", "wait": "recording"}
    watch = tools.capture or tools.watch
    live = (watch.live(folder.name) if watch is not None else None) or {}
    cameras = live.get("cameras", {}).values()
    if any(camera["state"] in COPYING for camera in cameras):
        done, whole = (sum(one[key] for one in cameras) for key in ("fetched_bytes", "promised_bytes"))
        since_ns = [one["fetching_since_ns"] for one in cameras if one.get("fetching_since_ns")]
        took_s = (live["host_ns"] - min(since_ns)) / 1e9 if since_ns else 0.0
        return {"state": "copying", "done": done, "whole": whole, "left_s": seconds_left(done, whole, took_s)}
    if is_on_card(folder):
        return {"state": "failed", "why": "it was not copied from the camera", "on_card": True}
    return None if is_here else {"state": "absent"}


def prepare_ended(tools: Collaborators) -> None:
    """Have the small videos of the last day's recordings made while there is time, the newest first."""
    table = tables.recording
    lately = table.c.created_utc_ns >= tools.records.utc_ns() - DAY_NS
    newest = table.c.created_utc_ns.desc()
    for row in tools.records.rows(table, table.c.folder.is_not(None), lately, order=newest):
        with contextlib.suppress(NotFound, StorageError):  # the list of recordings says what is wrong with it
            manifest = tools.folders.known_manifest(row["folder"])
            folder = (tools.folders.data / row["folder"]).absolute()
            if not is_set_aside(manifest) and _before_it_is_here(tools, folder) is None:
                tools.films.prepare(folder)
