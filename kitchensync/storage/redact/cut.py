"""`kitchensync cut`: write a span of a recording as a new recording with the same clocks, seconds and consent."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict
from uuid import uuid4

import numpy as np

from kitchensync.sensors.gopro.files.clip import open_clip
from kitchensync.sensors.gopro.mp4.film_part import needed, write_part
from kitchensync.sensors.gopro.mp4.sample_tables import ChapterFile, TrackId, read_chapter
from kitchensync.sensors.hololens.headset_stream import SAMPLES
from kitchensync.sensors.mask_runs import marked_runs
from kitchensync.shell.array_types import Mask
from kitchensync.shell.files_on_disk import file_sha256
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.copies.copy_list import MOST_CHUNK_BYTES, is_closed
from kitchensync.storage.disk.media_blocks import block_checksums
from kitchensync.storage.disk.self_check import CHECK
from kitchensync.storage.errors import CannotCut
from kitchensync.storage.exports.hidden_films import clips_in
from kitchensync.storage.frame_capture_times import rough_capture_times
from kitchensync.storage.installation.own_list import LineKind, own_list
from kitchensync.storage.manifest import Manifest, write_json
from kitchensync.storage.names import (
    CHUNK_SUFFIX,
    CLOCK_STREAMS,
    LEDGER_STREAMS,
    MADE_FROM,
    MANIFEST,
    MEDIA,
    PART_OF,
)
from kitchensync.storage.privacy import FOR_EVER, Pauses, all_but, pauses_of, span_of
from kitchensync.storage.reading.clip_starts import read_media
from kitchensync.storage.reading.decoded import is_seen
from kitchensync.storage.reading.headset_pictures import key_row
from kitchensync.storage.recording import ADOPTED, Recording, StoredStream
from kitchensync.storage.recording_files.annotation_folder import FILMS, FOLDER, PUSHED
from kitchensync.storage.redact.blanked_films import (
    hidden_by_time,
    hidden_of_tracks,
    hidden_pictures,
    runs_of,
)
from kitchensync.storage.redact.redaction import Span, host_span
from kitchensync.storage.redact.redactions import CUT, DONE, KEY, PICTURES, PRIVACY, SOUND
from kitchensync.storage.redact.to_destroy import PicturesAndSound, chunks_of
from kitchensync.storage.timeline.film_times import UNKNOWN

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import (
        FileFactsForm,
        FilmForm,
        RedactedChunkForm,
        RedactedFilmForm,
        RedactionForm,
    )

EDGE_NS = 10**9 // 2
"""Margin on both sides, for batches of samples and the uncertainty of picture times."""
MOTION_NS = 60 * 10**9
"""Margin of motion samples on both sides, for the alignment of films."""
AS_IT_IS = ("events", FOLDER)
"""Small folders that are copied as a whole."""
TELEMETRY, TIME_CODE = "gpmd", "tmcd"


@dataclass(frozen=True)
class _Part:
    """The new recording: folder, uuid, start and end (host_ns), and pauses to leave out."""

    out: Path
    uuid: str
    asked_s: Span
    inside: tuple[int, int]
    pauses: Pauses

    @property
    def outside(self) -> Pauses:
        """The time before and after it."""
        return all_but(*self.inside)

    @property
    def out_of_reach(self) -> Pauses:
        """The time for which it has no motion samples."""
        return all_but(self.inside[0] - MOTION_NS, self.inside[1] + MOTION_NS)


class CutContents(TypedDict):
    """Packets by stream, and videos, of a part."""

    packets: dict[str, int]
    films: list[str]


def write_cut(recording: Recording, span_s: Span, out: Path, *, as_id: str) -> CutContents:
    """Write a span of session seconds of a recording into an empty folder, as recording `as_id`.

    An infinite end cuts nothing off. Packets of the span are copied unchanged, with the pictures needed to decode
    them, without those in privacy pauses. Raises CannotCut, StorageError, UnreadableMedia, OSError.
    """
    _check(recording)
    part = _Part(out, str(uuid4()), span_s, _host_ns(recording, span_s), pauses_of(recording.path))
    origins = [*recording.manifest.get(MADE_FROM, []), str(recording.manifest["uuid"])]
    own_list(recording.path).add(LineKind.MADE, part.uuid, made_from=origins)
    chunks = {name: list(_write_stream(recording, name, part)) for name in recording.streams}
    films: dict[str, RedactedFilmForm] = {}
    for camera in recording.gopro_files:
        for film, left_out in (clips := list(_write_films(recording, camera, part))):
            films[f"{camera}/{film['file']}"] = left_out
        # The place on the memory card belongs to the original.
        media = read_media(recording.path, camera)
        kept = {key: value for key, value in media.items() if key not in (CHECK, "address")}
        if "files" in media:
            facts = {film["file"]: film for film, _ in clips}
            kept["files"] = [
                {**entry, **facts[entry["file"]]} for entry in media["files"] if entry["file"] in facts
            ]
        if kept:
            write_json(out / camera / MEDIA, kept)
    side = [recording.readable / name for name in (CLOCK_STREAMS, LEDGER_STREAMS)]
    for folder in (*(recording.path / name for name in AS_IT_IS), *side):
        if folder.is_dir():
            ignored = shutil.ignore_patterns(FILMS, PUSHED)
            shutil.copytree(folder, out / folder.name, ignore=ignored, copy_function=_copy_file)
    for path in recording.path.glob(f"*/calibration/*{CHUNK_SUFFIX}"):
        target = out / path.relative_to(recording.path)
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy_file(path, target)
    write_json(out / MANIFEST, _manifest(recording, part, as_id, origins, PicturesAndSound(chunks, films)))
    packets = {n: len(recording[n]) - sum(run["packets"] for run in gone) for n, gone in chunks.items()}
    return {"packets": packets, "films": sorted(films)}


def _copy_file(source: str | Path, target: str | Path) -> None:
    """Copy a small file. Raises CannotCut, before it is read, if it is too large to be one of ours."""
    if Path(source).stat().st_size > MOST_CHUNK_BYTES:
        raise CannotCut(
            Path(source), "is larger than any file of its kind; `kitchensync verify` says what to do"
        )
    shutil.copyfile(source, target)


def _check(recording: Recording) -> None:
    if not is_closed(recording.manifest):
        raise CannotCut(recording.path, "it is not finished; end it, or run `kitchensync recover`")
    for device in dict.fromkeys(name.partition("/")[0] for name in recording.streams):
        clock = recording.device_clock(device)
        if clock is None or clock.bound_ns > EDGE_NS:
            raise CannotCut(recording.path, f"nothing tells well when the packets of {device} were taken")
    for camera, about in recording.manifest["devices"].items():
        if about["kind"] == ADOPTED:
            raise CannotCut(recording.path, f"{camera} is a film that was adopted")
    for camera in recording.gopro_files:
        for paths in clips_in(recording, camera):
            times = rough_capture_times(recording, camera, open_clip(*paths))
            if (times.capture_ns == UNKNOWN).any() or np.max(times.bound_ns, initial=0) > EDGE_NS:
                why = f"nothing tells well when {camera}/{paths[0].name} was filmed; run `kitchensync sync`"
                raise CannotCut(recording.path, why)


def _host_ns(recording: Recording, span_s: Span) -> tuple[int, int]:
    """Convert session seconds to host times from the earliest necessary key frame, with a margin on both sides."""
    first_ns, last_ns = (
        host_span(recording, (at_s, at_s))[0][0] if isfinite(at_s) else round(np.sign(at_s)) * FOR_EVER
        for at_s in span_s
    )
    recording.pauses = all_but(first_ns - EDGE_NS, FOR_EVER)
    keys = [_key_ns(recording, recording[name]) for name in recording.streams]
    for camera in recording.gopro_files:
        keys += _film_keys_ns(recording, camera)
    whole = recording.manifest.get(PART_OF, {}).get("host_ns", (-FOR_EVER, FOR_EVER))
    return max(min(first_ns - EDGE_NS, *keys), whole[0]), min(last_ns + EDGE_NS, whole[1])


def _key_ns(recording: Recording, stream: StoredStream) -> int:
    """Return the time of the key frame that the first visible packet needs; FOR_EVER if none is visible."""
    shown = ~recording.hides(stream.name, stream.index)
    clock = recording.device_clock(stream.name.partition("/")[0])
    if clock is None or not shown.any():
        return FOR_EVER
    key = key_row(stream, int(np.argmax(shown)))
    ticks, arrived_ns = (stream.index[field][[key]] for field in ("device_ticks", "host_ns"))
    return int(clock.to_host_ns(ticks, near_host_ns=arrived_ns)[0]) - clock.bound_ns - 1


def _film_keys_ns(recording: Recording, camera: str) -> Iterator[int]:
    """Yield for each file the time of the key picture that its first visible picture needs."""
    for paths in clips_in(recording, camera):
        clip = open_clip(*paths)
        times = rough_capture_times(recording, camera, clip)
        bound_ns = np.broadcast_to(times.bound_ns, times.capture_ns.shape)
        for first, path in zip(clip.first_frames, paths, strict=True):
            tracks = read_chapter(path).tracks.items()
            for track in (track for key, track in tracks if key.handler == PICTURES):
                needs = needed(track.tables, ~hidden_pictures(recording, path, track))
                if needs.any():
                    at = first + int(np.argmax(needs))
                    yield int(times.capture_ns[at] - bound_ns[at]) - 1


def _write_stream(recording: Recording, name: str, part: _Part) -> Iterator[RedactedChunkForm]:
    """Write the kept packets of each chunk of a stream; yield the runs of other packets with their causes."""
    stream, folder = recording[name], part.out / name
    stays, paused = _rows(recording, stream, part)
    about = {"recording": part.uuid, "stream": name, "format": json.dumps(stream.format, sort_keys=True)}
    folder.mkdir(parents=True)
    start = 0
    for index, facts in chunks_of(recording, name):
        runs = marked_runs(stays[start : start + len(index)])
        rows = (packet for first, end in runs for packet in stream.packets(start + first, start + end))
        if packets := [_packet(stream, row, payload) for row, payload in rows]:
            seal(folder, facts["chunk"], packets, about)
        start += len(index)
    if stream.bad:
        raise CannotCut(recording.path, f"{name} is damaged; `kitchensync verify` says what to do")
    for cause, gone in ((PRIVACY, paused), (CUT, ~stays & ~paused)):
        for first, end in marked_runs(gone):
            ends = stream.index[[first, end - 1]]
            seqs, ticks = ends["seq"].tolist(), ends["device_ticks"].tolist()
            yield {"packets": end - first, "seq": seqs, "ticks": ticks, "cause": cause}


def _rows(recording: Recording, stream: StoredStream, part: _Part) -> tuple[Mask, Mask]:
    """Return which packets stay, and which are left out because of a privacy pause, (n,) each.

    Packets that need a left-out picture are left out too, up to the next key frame.
    """
    sensor = recording.sensor(stream.name)
    is_motion = sensor is not None and sensor.kind == SAMPLES
    recording.pauses = part.out_of_reach if is_motion else part.outside
    inside = _from_keys(stream, ~recording.hides(stream.name, stream.index))
    if not is_seen(recording.manifest, stream.name):
        return inside, np.zeros_like(inside)
    recording.pauses = part.pauses
    stays = _from_keys(stream, inside & ~recording.hides(stream.name, stream.index))
    return stays, inside & ~stays


def _from_keys(stream: StoredStream, stays: Mask) -> Mask:
    """Start each run of packets at a key frame."""
    for begin, end in marked_runs(stays):
        keys = (row for row in range(begin, end) if key_row(stream, row) == row)
        stays[begin : next(keys, end)] = False
    return stays


def _packet(stream: StoredStream, row: int, payload: bytes) -> Packet:
    facts, pose = stream.index[row], stream.pose(row)
    return Packet(
        int(facts["seq"]),
        int(facts["epoch_ms"]),
        int(facts["device_ticks"]),
        int(facts["host_ns"]),
        int(facts["connection"]),
        payload,
        b"" if pose is None else pose.astype("<f4").tobytes(),
    )


def _write_films(
    recording: Recording, camera: str, part: _Part
) -> Iterator[tuple[FilmForm, RedactedFilmForm]]:
    """Write the clips of a camera that have kept samples; yield the facts and left-out samples of each file."""
    (part.out / camera).mkdir()
    for paths in clips_in(recording, camera):
        chapters = [read_chapter(path) for path in paths]
        stays = [_stays(recording, chapter, part) for chapter in chapters]
        shown = [mask for masks in stays for key, mask in masks.items() if key.handler in (PICTURES, SOUND)]
        if not any(mask.any() for mask in shown):
            continue
        for chapter, masks in zip(chapters, stays, strict=True):
            target = part.out / camera / chapter.path.name
            gone = {k.handler: runs_of(~mask) for k, mask in masks.items() if k.handler in (PICTURES, SOUND)}
            write_part(chapter, target, masks)
            size, sha256 = target.stat().st_size, file_sha256(target)
            facts: FilmForm = {"file": target.name, "bytes": size, "stored_bytes": size, "sha256": sha256}
            yield {**facts, "blocks": block_checksums(target)}, {"sha256": sha256, "samples": gone}


def _stays(recording: Recording, chapter: ChapterFile, part: _Part) -> dict[TrackId, Mask]:
    """Return which samples of a film stay, (n,) of each track."""
    stays: dict[TrackId, Mask] = {}
    for key, track in chapter.tracks.items():
        recording.pauses = part.out_of_reach if key.format == TELEMETRY else part.outside
        if key.handler == PICTURES:
            stays[key] = needed(track.tables, ~hidden_pictures(recording, chapter.path, track))
        elif key.handler == SOUND:
            stays[key] = ~hidden_by_time(recording, chapter.path, track)
            stays[key][:-1] |= stays[key][1:]  # decoding a sound block needs the previous one
        elif key.format == TELEMETRY:
            stays[key] = ~hidden_by_time(recording, chapter.path, track)
            stays[key][:1] = True  # it has the time of the first picture
        else:
            stays[key] = np.full(len(track.tables), key.format == TIME_CODE)
    recording.pauses = part.pauses
    for key, mask in hidden_of_tracks(recording, chapter).items():
        stays[key] &= ~mask
    return stays


def _manifest(
    recording: Recording, part: _Part, as_id: str, origins: list[str], left_out: PicturesAndSound
) -> Manifest:
    whole, session = recording.manifest, recording.session_time
    firsts = [int(recording[name].index["host_ns"][0]) for name in recording.streams if len(recording[name])]
    start_s, end_s = span_of(whole)
    asked_s = (max(start_s, part.asked_s[0]), min(end_s, part.asked_s[1]))
    first_ticks = None if session is None else session.ticks0
    begins: Any = whole.get(PART_OF) or {"first_host_ns": min(firsts), "first_ticks": first_ticks}
    files: dict[str, FileFactsForm] = {
        path.relative_to(part.out).as_posix(): {"bytes": path.stat().st_size, "sha256": file_sha256(path)}
        for path in sorted(part.out.rglob(f"*{CHUNK_SUFFIX}"))
    }
    redaction: RedactionForm = {
        "id": CUT,
        "state": DONE,
        "reason": f"cut from {whole['recording']}",
        "by": "",
        "open": [],
        "utc_ns": time.time_ns(),
        "streams": left_out.streams,
        "films": left_out.films,
    }
    return {
        **whole,
        "recording": as_id,
        "uuid": part.uuid,
        MADE_FROM: origins,
        PART_OF: {
            **begins,
            "recording": whole["recording"],
            "host_ns": list(part.inside),
            "session_s": [at_s if isfinite(at_s) else None for at_s in asked_s],
        },
        "files": files,
        KEY: [*whole.get(KEY, []), redaction],
    }
