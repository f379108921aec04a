"""`kitchensync redact`: note what will be destroyed, destroy it here and in every copy in reach, note that too.

The intent stands in the manifest before the first byte goes: the same command takes up whatever was interrupted.
"""

from __future__ import annotations

import time
import uuid
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from sensors.errors import SensorError, UnreadableMedia
from sensors.host_clock import utc_anchor
from storage.copies.copies import BOOK, Book, read_book
from storage.copies.copy_list import is_closed
from storage.copies.read_through import stores_of
from storage.copies.target import Target
from storage.errors import NotRedactable, StorageError, words_of
from storage.events import EventLog
from storage.lab import lab_of
from storage.life import usable_manifest
from storage.manifest import Manifest, edit_manifest, read_manifest
from storage.privacy import Pauses, pauses_of
from storage.recording import Recording, open_recording
from storage.redact.apply_redaction import Facts, apply
from storage.redact.redactions import BEGUN, DONE, KEY, NOT_YET, redactions
from storage.redact.to_destroy import plan

WRITER = "researcher"
Span = tuple[float, float]


def redact(
    path: Path, *, reason: str, by: str = "", span_s: Span | None = None, whole_films: bool = False
) -> dict[str, Any]:
    """Destroy pictures and sound of the privacy pauses, or of a span of session seconds; return what was done.

    `whole_films` destroys films whole of which nobody can tell when they were taken. Raises NotRedactable,
    NotARecording, Withdrawn, MoverBusy, BadEventLog, OSError.
    """
    manifest = usable_manifest(path)
    if not is_closed(manifest):
        raise NotRedactable(path, "it is not finished", "end it, or run `kitchensync recover`")
    with Book(path) if (path / BOOK).exists() else nullcontext():
        done = [_finish(path, one) for one in redactions(manifest) if one["state"] == BEGUN or one["open"]]
        with open_recording(path) as recording:
            spans = recording.pauses if span_s is None else _host_span(recording, span_s)
            if not spans and not done:
                raise NotRedactable(path, "it has no privacy pause", "give --from and --to")
            found = plan(recording, spans, whole_films=whole_films)
        if found["streams"] or found["films"]:
            done.append(_finish(path, _begin(path, spans, found, reason, by)))
    return _said(path, done)


def destroy_where_dropped(path: Path) -> None:
    """Destroy the pauses of a closed recording where lab.toml says that they are not stored.

    Where that cannot be done now, `problems` of the manifest says so, and `verify` with it.
    """
    try:
        if lab_of(path).pause == "drop" and pauses_of(path):
            redact(path, reason="privacy pause", by="lab.toml")
    except (StorageError, SensorError, OSError) as error:
        why = f"{NOT_YET}: {words_of(error)}"
        with edit_manifest(path) as manifest:
            manifest["problems"] = list(dict.fromkeys([*manifest.get("problems", []), why]))


def _host_span(recording: Recording, span_s: Span) -> Pauses:
    """Put seconds of session time on the capture clock."""
    session = recording.session_time
    if session is None or session.clock is None:
        started_ns = (recording.manifest.get("started") or {}).get("host_ns")
        if started_ns is None:
            raise NotRedactable(recording.path, "nothing tells when it began", "give no --from and --to")
        first_ns, last_ns = (int(started_ns) + round(at_s * 1e9) for at_s in span_s)
        return ((first_ns, last_ns),)
    line = session.clock.lines[0]
    first, last = (int(line.to_host_ns(session.ticks0 + round(at_s * 1e7))) for at_s in span_s)
    return ((first, last),)


def _begin(path: Path, spans: Pauses, found: dict[str, Any], reason: str, by: str) -> dict[str, Any]:
    redaction = {
        "id": str(uuid.uuid4()),
        "state": BEGUN,
        "reason": reason,
        "by": by,
        "utc_ns": time.time_ns(),
        "host_ns": [list(span) for span in spans],
        **found,
        "open": [],
    }
    with edit_manifest(path) as manifest:
        manifest.setdefault(KEY, []).append(redaction)
    return redaction


def _finish(path: Path, redaction: dict[str, Any]) -> dict[str, Any]:
    """Destroy in the copies first, then here; what cannot be reached is open, and tried again the next time."""
    done = redaction | {"state": DONE, "open": [], "places": []}
    facts: Facts = {}
    for line in stores_of(path):
        copy = Path(line.where) / path.name
        try:
            Target(Path(line.where), line.target)
            if _is_copy(copy, read_manifest(path)):
                facts |= apply(copy, done | {"open": [], "places": []}, {})
                done["places"].append(str(copy))
        except (OSError, StorageError, UnreadableMedia) as error:
            done["open"].append(f"{copy}: {words_of(error)}")
    clouds = sorted({line.where for line in read_book(path) if "://" in line.where})
    done["open"] += [f"{where}: delete what lies there by hand" for where in clouds]
    _note(path, done)
    apply(path, done | {"places": [*done["places"], str(path)]}, facts)
    return done


def _is_copy(folder: Path, manifest: Manifest) -> bool:
    return folder.is_dir() and read_manifest(folder).get("uuid") == manifest.get("uuid")


def _note(path: Path, redaction: dict[str, Any]) -> None:
    """Log who destroyed what, and why, once."""
    body = {key: redaction[key] for key in ("reason", "by", "host_ns")}
    now = utc_anchor().host_ns
    EventLog(path, WRITER).append("redact", host_ns=now, uncertainty_ns=0, body=body, op_id=redaction["id"])


def _said(path: Path, done: list[dict[str, Any]]) -> dict[str, Any]:
    chunks = [chunk for one in done for found in one["streams"].values() for chunk in found]
    return {
        "recording": path.name,
        "status": "open" if any(one["open"] for one in done) else "done" if done else "nothing",
        "packets": sum(chunk["packets"] for chunk in chunks),
        "chunks": len(chunks),
        "bytes": sum(chunk["bytes"] for chunk in chunks),
        "films": sorted({film for one in done for film in one["films"]}),
        "places": sorted({place for one in done for place in [*one["places"], str(path)]} if done else ()),
        "open": [why for one in done for why in one["open"]],
    }
