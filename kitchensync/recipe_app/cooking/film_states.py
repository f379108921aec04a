"""The state of a recording's small video, from the camera's card to the browser."""

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
"""States of a camera whose video is still being copied."""


def film_state(tools: Collaborators, folder: Path, height: int) -> FilmState:
    """Return the state of the small video; queue it if the camera's video is here. Raises NotFound, StorageError.

    `state` is ready, waiting, copying, synchronizing, making, failed, or absent if no camera filmed it.
    """
    state = tools.films.state(folder, height)
    if state["state"] != "none":
        return state
    if (copying := _before_copied(tools, folder)) is not None:
        return copying
    tools.films.ask(folder, height)
    return tools.films.state(folder, height)


def _before_copied(tools: Collaborators, folder: Path) -> FilmState | None:
    """Return the state until the camera's video is copied to this computer, None after that."""
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
        done, whole = (sum(camera[key] for camera in cameras) for key in ("fetched_bytes", "promised_bytes"))
        since_ns = [camera["fetching_since_ns"] for camera in cameras if camera.get("fetching_since_ns")]
        took_s = (live["host_ns"] - min(since_ns)) / 1e9 if since_ns else 0.0
        return {"state": "copying", "done": done, "whole": whole, "left_s": seconds_left(done, whole, took_s)}
    if is_on_card(folder):
        return {"state": "failed", "why": "it was not copied from the camera", "on_card": True}
    return None if is_here else {"state": "absent"}


def prepare_ended(tools: Collaborators) -> None:
    """Make the small videos of the last day's recordings in idle time, the newest first."""
    table = tables.recording
    lately = table.c.created_utc_ns >= tools.records.utc_ns() - DAY_NS
    newest = table.c.created_utc_ns.desc()
    for row in tools.records.rows(table, table.c.folder.is_not(None), lately, order=newest):
        with contextlib.suppress(NotFound, StorageError):  # the list of recordings shows its problem
            manifest = tools.folders.known_manifest(row["folder"])
            folder = (tools.folders.data / row["folder"]).absolute()
            if not is_set_aside(manifest) and _before_copied(tools, folder) is None:
                tools.films.prepare(folder)
