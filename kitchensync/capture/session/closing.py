"""Close a recording: write hashes, losses and its end into the manifest. Packets still queued keep it open."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import redis

from kitchensync.capture.errors import QueueUnavailable, RecordingGone
from kitchensync.capture.plan import Plan
from kitchensync.capture.process.heartbeat import kept_anchors
from kitchensync.capture.process.outcome import NO_SPACE, Outcome
from kitchensync.capture.queue.newest_packets import in_order
from kitchensync.capture.queue.queue_connection import connected
from kitchensync.capture.queue.queue_reader import NO_PACKETS, sealed_files
from kitchensync.capture.queue.server import QueueServer
from kitchensync.shell.files_on_disk import file_sha256
from kitchensync.shell.host_clock import UtcAnchor, utc_anchor
from kitchensync.storage.chunks.chunk_reader import chunk_paths
from kitchensync.storage.ledger import DeclaredLossNote
from kitchensync.storage.manifest import edit_manifest, write_json
from kitchensync.storage.names import MANIFEST, files_key, stream_folder, stream_key
from kitchensync.storage.reading.device_constants import calibration_files
from kitchensync.storage.redact.redaction import destroy_where_dropped

ENDED = "ended.json"
"""File in the work folder: how a recording ended while its manifest was missing."""
CLOSING = "closing"
CLOSING_BYTES = 4 << 20
"""Disk space reserved for the manifest, so that a recording can be closed on a full disk."""
RESERVE = "reserve"
RESERVE_BYTES = 48 << 20
"""Disk space reserved for queued packets and the ledger, so that they can be sealed on a full disk."""


def reserve_space(path: Path, size: int) -> None:
    """Allocate a private file of `size` bytes; deleting it frees the space again."""
    with open(path, "wb", opener=partial(os.open, mode=0o600)) as file:
        os.posix_fallocate(file.fileno(), 0, size)


@dataclass(frozen=True)
class UndrainedStream:
    """Packets of one stream that are still queued, and why they could not be stored."""

    stream: str
    packets: int
    first_seq: int
    last_seq: int
    why: str

    def facts(self) -> Any:
        """Return its entry in the manifest."""
        return {name: value for name, value in asdict(self).items() if name != "stream"}

    def __str__(self) -> str:
        return f"{self.packets} packets of {self.stream} ({self.why})"


def close_recording(
    plan: Plan, outcome: Outcome, server: QueueServer | None, ended: UtcAnchor | None = None
) -> list[UndrainedStream]:
    """Write hashes, losses and the end into the manifest, then clear the queue on an external server.

    Returns what is still queued; if anything is, the queue is not cleared and the recording stays open for `recover`.
    `server` is None if the queue server is external. `ended` is the last heartbeat of a killed recorder; without it
    the recording ends now. Raises QueueUnavailable and RecordingGone; then too the recording stays open.
    """
    if not (Path(plan.path) / MANIFEST).exists():
        now = utc_anchor()
        end = {"host_ns": now.host_ns, "utc_ns": now.utc_ns, "reason": outcome.reason}
        write_json(Path(plan.work) / ENDED, end | {"problems": outcome.problems})
        raise RecordingGone(Path(plan.path), Path(plan.work))
    files: dict[str, Any] = {}
    waiting: list[UndrainedStream] = []
    with connected(plan.queue_url) as client:
        for stream in plan.stored_streams():
            files |= _files(client, plan, stream)
            waiting += _still_queued(client, plan, stream, outcome)
    (Path(plan.work) / RESERVE).unlink(missing_ok=True)
    lost = waiting if waiting and not _is_kept(server) else []
    (Path(plan.work) / CLOSING).unlink(missing_ok=True)
    _write(plan, outcome, files, ended or utc_anchor(), waiting=[] if lost else waiting, lost=lost)
    if waiting and not lost:
        return waiting
    if server is None:
        clear_queue(plan)
    return []


def finish_recording(plan: Plan, problems: Sequence[str] = ()) -> None:
    """Add problems of videos that arrived after the closing, and destroy what the lab does not keep."""
    if problems:
        with edit_manifest(Path(plan.path)) as manifest:
            manifest["problems"] = list(dict.fromkeys([*manifest.get("problems", []), *problems]))
    if plan.pause == "drop":
        destroy_where_dropped(Path(plan.path))


def _is_kept(server: QueueServer | None) -> bool:
    """Return whether the queue outlives its server; ours may have dropped its files because the disk was full."""
    try:
        return server is None or server.keep_files()
    except QueueUnavailable:
        return False


def _write(
    plan: Plan,
    outcome: Outcome,
    files: dict[str, Any],
    now: UtcAnchor,
    *,
    waiting: list[UndrainedStream],
    lost: list[UndrainedStream],
) -> None:
    cause = NO_SPACE if outcome.reason == NO_SPACE else DeclaredLossNote.kind
    with edit_manifest(Path(plan.path)) as manifest:
        before = manifest.pop("waiting", {})
        manifest["state"] = "recording" if waiting else "complete"
        if anchors := kept_anchors(Path(plan.work)):
            manifest["utc_anchors"] = anchors
        if not before:
            manifest["stopped"] = {"host_ns": now.host_ns, "utc_ns": now.utc_ns, "reason": outcome.reason}
        manifest["files"] = files | calibration_files(Path(plan.path))
        manifest["restarts"] = manifest.get("restarts", []) + outcome.restarts
        unstored = ["not everything in the queue could be stored"] if lost else []
        problems = [*manifest.get("problems", []), *outcome.problems, *unstored]
        manifest["problems"] = list(dict.fromkeys(problems))
        if outcome.notes:
            manifest["notes"] = list(dict.fromkeys([*manifest.get("notes", []), *outcome.notes]))
        manifest["declared_losses"] = [
            {
                "stream": stream.stream,
                "first_seq": stream.first_seq,
                "last_seq": stream.last_seq,
                "cause": cause,
            }
            for stream in lost
        ]
        if waiting:
            manifest["waiting"] = {stream.stream: stream.facts() for stream in waiting}


def clear_queue(plan: Plan) -> None:
    """Delete all streams of a recording from an external queue server. Raises QueueUnavailable."""
    with connected(plan.queue_url) as client:
        for stream in plan.stored_streams():
            client.delete(stream_key(plan.uuid, stream), files_key(plan.uuid, stream))


def _files(client: redis.Redis, plan: Plan, stream: str) -> dict[str, Any]:
    """Return size and hash of every sealed file of a stream, by its path in the recording."""
    files = sealed_files(client, plan.uuid, stream)
    folder = stream_folder(Path(plan.path), stream)
    prefix = folder.relative_to(plan.path).as_posix()
    for path in chunk_paths(folder):
        if path.name not in files:  # its drainer was killed after sealing, before it reported the hash
            files[path.name] = {"bytes": path.stat().st_size, "sha256": file_sha256(path)}
    return {f"{prefix}/{name}": facts for name, facts in files.items()}


def _still_queued(client: redis.Redis, plan: Plan, stream: str, outcome: Outcome) -> list[UndrainedStream]:
    """Return the packets of a stream that are still queued because they could not be stored, if any."""
    why = outcome.aside.get(stream) or "its drainer could not store them"
    try:
        numbers = [packet.seq for packet in in_order(client, plan.uuid, stream)]
    except NO_PACKETS:  # its entries are no packets, so only their ids tell the numbers
        key = stream_key(plan.uuid, stream)
        ends: list[Any] = [*client.xrange(key, count=1), *client.xrevrange(key, count=1)]  # type: ignore[misc]
        first_seq, last_seq = (int(entry_id.split(b"-")[1]) for entry_id, _ in ends)
        return [UndrainedStream(stream, int(client.xlen(key)), first_seq, last_seq, why)]
    return [UndrainedStream(stream, len(numbers), numbers[0], numbers[-1], why)] if numbers else []
