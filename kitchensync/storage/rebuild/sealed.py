"""What sealed files say of a recording without its manifest: whose they are, which streams, in which form."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kitchensync.sensors.errors import UnknownSensorStream
from kitchensync.sensors.hololens.catalogue import STREAMS, headset_stream
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.sensors.stream import Format
from kitchensync.shell.files_on_disk import file_sha256
from kitchensync.storage.chunks.apart import ReaderApart
from kitchensync.storage.chunks.chunk_reader import Chunk, chunk_paths
from kitchensync.storage.copies.copy_log import COPIED, read_copies
from kitchensync.storage.ledger import Note
from kitchensync.storage.ledger_reader import notes_in
from kitchensync.storage.names import CHUNK_SUFFIX, CLOCK_STREAMS, LEDGER_STREAMS
from kitchensync.storage.reading.device_constants import calibration_files

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import FileFactsForm, StreamForm


@dataclass
class SealedFacts:
    """What the sound ones among the sealed files tell."""

    files: dict[str, FileFactsForm] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    uuids: set[str] = field(default_factory=set)
    formats: dict[str, Format] = field(default_factory=dict)
    "Of every sensor stream that was armed, also of one that delivered nothing; empty where nobody said."
    notes: dict[str, list[Note]] = field(default_factory=dict)
    first_host_ns: int | None = None
    last_host_ns: int | None = None
    newest: Path | None = None
    "The file with the last packet, for want of a better clock."


def read_sealed(recording: Path) -> SealedFacts:
    """Read all sealed files, each in a process apart first."""
    found = SealedFacts()
    # as they were copied, before the loss: a file that changed since then is found by it
    known = {line.file: line.sha256 for line in read_copies(recording) if line.kind == COPIED}
    folders = sorted({path.parent for path in recording.glob(f"*/*/*{CHUNK_SUFFIX}")})
    with ReaderApart() as apart:
        for folder in folders:
            stream = folder.relative_to(recording).as_posix()
            for path in chunk_paths(folder):
                relative = f"{stream}/{path.name}"
                if apart.look(path).damage:
                    found.damaged.append(relative)
                    continue
                with Chunk(path) as chunk:
                    attributes, index = chunk.attributes, chunk.index
                if uuid := attributes.get("recording"):
                    found.uuids.add(str(uuid))
                if stream.startswith(f"{LEDGER_STREAMS}/"):
                    for name, notes in notes_in([path]).items():
                        found.notes.setdefault(name, []).extend(notes)
                if stream.partition("/")[0] not in (CLOCK_STREAMS, LEDGER_STREAMS):
                    form = json.loads(attributes.get("format", "{}"))
                    found.formats[stream] = form or found.formats.get(stream, {})
                    if len(index):
                        first, last = int(index["host_ns"].min()), int(index["host_ns"].max())
                        found.first_host_ns = min(first, found.first_host_ns or first)
                        if last >= (found.last_host_ns or last):
                            found.last_host_ns, found.newest = last, path
                sha256 = known.get(relative) or file_sha256(path)
                found.files[relative] = {"bytes": path.stat().st_size, "sha256": sha256}
    for stream in found.notes:
        found.formats.setdefault(stream, {})
    found.files |= calibration_files(recording)
    return found


def streams_of(sealed: SealedFacts) -> dict[str, StreamForm]:
    """Return the streams as a manifest describes them."""
    order = {short: place for place, short in enumerate(STREAMS)}
    found: dict[str, StreamForm] = {}
    for device, _, short in sorted(
        (name.partition("/") for name in sealed.formats),
        key=lambda parts: (parts[0], order.get(parts[2], len(order)), parts[2]),
    ):
        form = sealed.formats[f"{device}/{short}"]
        try:
            sensor = headset_stream(short)
            sound: Literal["aac", "pcm"] = "aac" if form.get("codec", "aac") == "aac" else "pcm"
            usual_hz = sensor.rate_hz(Profile(microphone=sound, extended_audio=sound))
            hz = float(form.get("hz", usual_hz))
            entry: StreamForm = {"device": device, "port": sensor.port, "nominal_hz": hz}
            entry["adaptive"] = sensor.adaptive
        except UnknownSensorStream:  # of a plug-in sensor nobody else knows
            entry = {"device": device, "nominal_hz": 0.0, "adaptive": True}
        if form:
            entry["format"] = form
        found[f"{device}/{short}"] = entry
    return found
