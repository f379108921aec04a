"""The closing of a recording: hashes, losses and the end go into the manifest."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import redis

from capture import queue
from capture.outcome import NO_SPACE, Outcome
from capture.plan import Plan
from sensors.host_clock import UtcAnchor, utc_anchor
from storage.calibration import calibration_files
from storage.chunk import chunk_paths
from storage.errors import StorageError
from storage.manifest import edit_manifest, read_manifest
from storage.names import files_key, stream_folder, stream_key

BOOKS = "books"
BOOKS_BYTES = 4 << 20
"""Room kept aside for the manifest, so that a recording can be closed on a full disk."""


def is_open(recording: Path) -> bool:
    """Tell whether a recording was begun and not closed."""
    try:
        return bool(read_manifest(recording)["state"] == "recording")
    except StorageError:
        return False


def close_books(plan: Plan, outcome: Outcome, *, own_queue: bool, ended: UtcAnchor | None = None) -> None:
    """Put hashes, losses and the end into the manifest, then clear the queue on a server of yours.

    `ended` is when a recorder that was killed was last seen alive; else the recording ends now. Raises
    QueueUnavailable; then the recording stays open.
    """
    files: dict[str, Any] = {}
    losses: list[dict[str, Any]] = []
    with queue.reached(plan.queue_url) as client:
        for stream in plan.stored_streams():
            files |= _files(client, plan, stream)
            losses += _left_behind(client, plan, stream, outcome)
    anchor = ended or utc_anchor()
    (Path(plan.work) / BOOKS).unlink(missing_ok=True)
    with edit_manifest(Path(plan.path)) as manifest:
        manifest["state"] = "complete"
        manifest["stopped"] = {"host_ns": anchor.host_ns, "utc_ns": anchor.utc_ns, "reason": outcome.reason}
        manifest["files"] = files | calibration_files(Path(plan.path))
        manifest["restarts"] = outcome.restarts
        manifest["problems"] = outcome.problems
        manifest["declared_losses"] = losses
    if not own_queue:
        clear_queue(plan)


def clear_queue(plan: Plan) -> None:
    """Take everything of a recording off a server of yours. Raises QueueUnavailable."""
    with queue.reached(plan.queue_url) as client:
        for stream in plan.stored_streams():
            client.delete(stream_key(plan.uuid, stream), files_key(plan.uuid, stream))


def _files(client: redis.Redis, plan: Plan, stream: str) -> dict[str, Any]:
    """Return size and hash of every sealed file of a stream, by its path in the recording.

    The hash is the one that it was sealed with; where a kill came between sealing and telling, it is read now.
    """
    known = queue.sealed_files(client, plan.uuid, stream)
    folder = stream_folder(Path(plan.path), stream)
    prefix = folder.relative_to(plan.path).as_posix()
    for path in chunk_paths(folder):
        if path.name not in known:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            known[path.name] = {"bytes": path.stat().st_size, "sha256": digest}
    return {f"{prefix}/{name}": facts for name, facts in known.items()}


def _left_behind(client: redis.Redis, plan: Plan, stream: str, outcome: Outcome) -> list[dict[str, Any]]:
    """Name the packets that are still in the queue because they could not be stored."""
    key = stream_key(plan.uuid, stream)
    first: Any = client.xrange(key, count=1)  # not all of it: that may be a gigabyte
    last: Any = client.xrevrange(key, count=1)
    if not first:
        return []
    first_seq, last_seq = (int(entry_id.split(b"-")[1]) for ((entry_id, _),) in (first, last))
    cause = NO_SPACE if outcome.reason == NO_SPACE else "declared_loss"
    return [{"stream": stream, "first_seq": first_seq, "last_seq": last_seq, "cause": cause}]
