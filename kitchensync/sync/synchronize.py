"""Synchronize one recording: align every camera file with the headset, index the frames, write `sync/`.

Without a headset cameras are aligned with the first camera that recorded motion.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from kitchensync.sensors.hololens.catalogue import GYROSCOPE
from kitchensync.storage.copies.read_through import missing_files, promised_files
from kitchensync.storage.manifest import write_json
from kitchensync.storage.recording import Recording, open_recording
from kitchensync.storage.timeline.alignment import ALIGNED, CHECK, NOT_ALIGNED, Alignment, ChapterPlace, Input
from kitchensync.storage.timeline.alignment_evidence import ClockEvidence
from kitchensync.storage.timeline.bridge import Bridge
from kitchensync.storage.timeline.clock_map import REFERENCE_CLOCK, ClockMap
from kitchensync.sync.align.chapters import heard_moved, of_chapter, prior_moved
from kitchensync.sync.align.headset_gyro import HEAD_POSE
from kitchensync.sync.align.pair_alignment import PairAlignment, by_clocks, by_sound
from kitchensync.sync.answers import plain
from kitchensync.sync.frame_index.event_frames import write_event_frames
from kitchensync.sync.frame_index.write_index import write_tables
from kitchensync.sync.recording.clips_to_align import CameraClip, CameraFile
from kitchensync.sync.recording.compare import Compared, compare
from kitchensync.sync.recording.latency_store import stored_latency
from kitchensync.sync.recording.sync_session import Headset, Master, Reference, Session, open_session
from kitchensync.sync.result.new_set import new_set
from kitchensync.sync.result.result import (
    BOTH_FILMS,
    GYRO_TO_FRAME,
    REFERENCE_PICTURES,
    SYSTEMATIC,
    bridged,
    by_verdict,
    clock_errors,
    pair_aligned,
    plot_arrays,
    refused,
    sound_errors,
    with_picture_latency,
)
from kitchensync.sync.result.state import fingerprint, remember

ORDER = (NOT_ALIGNED, CHECK, ALIGNED)
NOTHING = "nothing_to_align"
LATE_NOTED_S = 1e-3
CLOCKS_SERVE_S = 0.5  # clocks worse than this place no frame anywhere


def synchronize(path: Path | str, *, master: str | None = None) -> dict[str, Any]:
    """Align and index one recording; return its entry of `sync/1`.

    `master` is the stream whose frames are indexed: `pv`, `gopro`, or a name such as `hololens-b/pv`; the default is
    PV when it was recorded. Writes only below `sync/`, as one set: alignments with their plot data, `index.parquet`,
    `poses.parquet`, and the state. No index when nothing could be aligned. Raises NotARecording, OSError; then
    everything that was there before stays.
    """
    inputs = fingerprint(Path(path), master)  # before: a file that comes meanwhile is not in the answer
    with open_recording(path) as recording, new_set(recording.path) as folder:
        answer = _synchronized(recording, master, folder)
        remember(folder, inputs, answer)
        return answer


def _synchronized(recording: Recording, master: str | None, folder: Path) -> dict[str, Any]:
    session = open_session(recording, master)
    session.folder = folder
    pairs: list[Alignment] = []
    if not _is_alone(session):
        pairs = [_bridged(session, headset) for headset in session.headsets if headset is not session.main]
        own = {reference.clip.camera for reference in session.references}
        others = [clip for clip in session.clips if clip.camera not in own and _is_expected(clip)]
        pairs += [pair for clip in others for pair in _align_clip(session, clip)]
        pairs += _missing_cameras(session)
    status = next((s for s in ORDER if any(pair.status == s for pair in pairs)), NOTHING)
    answer: dict[str, Any] = {"recording": recording.id, "status": status, "path": str(recording.path)}
    is_lost = bool(pairs) and not _was_compared(session)
    usable = not pairs or is_lost or bool(session.maps or session.bridges)
    answer |= write_tables(session, master=master, usable=usable)
    if told := _left_out(session, is_lost=is_lost):
        answer["reasons"] = [*answer.get("reasons", []), *told]
    answer["events"] = write_event_frames(session, pairs)
    return answer | {"pairs": [_object(pair) for pair in pairs]}


def _is_alone(session: Session) -> bool:
    """Return whether only one device with a clock was armed, or one camera with motion adopted: nothing to align."""
    kinds = [device.get("kind") for device in (session.recording.manifest.get("devices") or {}).values()]
    moving = {clip.camera for clip in session.clips if clip.gyro is not None}
    return sum(kind in ("hololens", "gopro") for kind in kinds) < 2 and len(moving) < 2


def _is_expected(clip: CameraClip) -> bool:
    """Return whether a clip ought to be aligned: any of a recorded camera, of adopted ones those with motion."""
    return clip.camera == clip.device or clip.gyro is not None


def _was_compared(session: Session) -> bool:
    """Return whether there was another device's data to compare; a lost film takes nothing from the headset."""
    readable = {clip.camera for clip in session.clips if clip.readable}
    return len(session.headsets) > 1 or len(readable) > (0 if session.headsets else 1)


def _left_out(session: Session, *, is_lost: bool) -> list[str]:
    """Name the films that no index can hold: unreadable ones and, without a headset, clips on another media time."""
    told = [file.problem for file in session.cameras if file.problem and not file.has_frames]
    told += [text for clip in session.clips if clip.gyro is None for text in clip.noted]
    told += [clip.problem for clip in session.clips if clip.is_wrong_pace]
    if session.main is None:
        others = [clip for clip in session.clips if clip.readable and clip is not session.own_clip]
        told += [
            f"{file.source} is a clip of its own: the index does not hold it"
            + (f" ({clip.problem})" if clip.problem else "")
            for clip in others
            for file in clip.files
            if not session.is_on_tables(file.source)
        ]
        return told
    if is_lost:
        told.append("no film can be read: the index holds the headset alone")
    return told


def _bridged(session: Session, headset: Headset) -> Alignment:
    """Relate another headset to the main one through the host, write its file, return its alignment."""
    main = session.main
    assert main is not None
    bridge = Bridge(headset.host, main.host) if headset.host is not None and main.host is not None else None
    answer = bridged(bridge, headset.name, main.epoch, headset.epoch, _last_ticks(headset))
    if answer.status != NOT_ALIGNED and bridge is not None:
        session.bridges[headset.name] = bridge
    answer = replace(answer, source=headset.name, master=main.name)
    _write(session, answer, {})
    return answer


def _last_ticks(headset: Headset) -> int:
    return max((int(stream.index["device_ticks"].max()) for _, stream in headset.streams), default=0)


def _align_clip(session: Session, clip: CameraClip) -> list[Alignment]:
    """Compare a clip once, then say it chapter by chapter: write their files, return their alignments."""
    compared = compare(session, clip) if clip.readable and not clip.is_wrong_pace else None
    answers = []
    for file in clip.files:
        body, plots = _of_file(session, clip, file, compared)
        body = _with_picture_latency(session, file, body)
        answer = replace(
            body,
            source=file.source,
            master=compared.master.motion if compared else _no_master(session),
            warnings=(*body.warnings, *clip.warnings, *_of_reference(compared)),
            other_headsets=compared.others if compared is not None else (),
            clues=clip.clues,
        )
        if not session.headsets:
            answer = replace(answer, master_clock=REFERENCE_CLOCK, epoch_ticks=None)
        if len(clip.files) > 1:
            place = ChapterPlace(file.start_s, tuple(one.path.name for one in clip.files))
            answer = replace(answer, chapter=place)
        _write(session, answer, plots)
        answers.append(answer)
    return answers


def _of_reference(compared: Compared | None) -> list[str]:
    """What is said of the clip that a film was put on."""
    if compared is None or not isinstance(compared.master, Reference):
        return []
    return [f"{compared.master.name}: {text}" for text in compared.master.clip.warnings]


def _no_master(session: Session) -> str:
    """Name what a file would have been compared with."""
    return next(
        (master.motion for master in (session.main, *session.references) if master), f"none/{GYROSCOPE}"
    )


def _object(answer: Alignment) -> dict[str, Any]:
    said: dict[str, Any] = plain(answer.as_object())
    return said


def _write(session: Session, answer: Alignment, plots: dict[str, Any]) -> None:
    target = session.folder / "alignment" / _file_name(session, answer.source)
    target.parent.mkdir(parents=True, exist_ok=True)
    if plots:
        np.savez_compressed(target.with_name(target.name.removesuffix(".json") + ".plot.npz"), **plots)
    write_json(target, _object(answer))


def _with_picture_latency(session: Session, file: CameraFile, answer: Alignment) -> Alignment:
    """Use what `sync-camera` measured of a camera, and without a headset of the reference."""
    if file.source not in session.maps:
        return answer
    master = session.rides_with[file.source]
    seen = {GYRO_TO_FRAME: [file]}
    if isinstance(master, Reference):
        seen[REFERENCE_PICTURES.part] = list(master.clip.readable)
    for part, files in seen.items():
        for one in files:
            if (measured := stored_latency(session.recording.path, one.path)) is not None:
                session.picture_late_s[one.source] = float(measured["latency_ms"]) / 1e3
                answer = with_picture_latency(answer, measured, part)
    return answer


def _of_file(
    session: Session, clip: CameraClip, file: CameraFile, compared: Compared | None
) -> tuple[Alignment, dict[str, Any]]:
    """The alignment of one file, and what its plot draws."""
    inputs = _inputs(session, clip, compared.master if compared else None)
    if not file.has_frames:
        return refused(file.problem, inputs=inputs), {}
    if clip.is_wrong_pace:
        return refused(clip.problem, inputs=inputs), {}
    if compared is None:
        sent = (
            "the headset sent nothing"
            if session.headsets
            else "no headset and no camera's motion was recorded"
        )
        return refused(f"{sent} to align with", inputs=inputs), {}
    clocks = _said_of(compared.timestamps, file.start_s)
    found = compared.found
    heard = heard_moved(compared.heard, file.start_s) if compared.heard is not None else None
    if found is not None and (found.clock_map is not None or found.saw_motion):
        compared = replace(compared, found=_of_chapter(file, compared), heard=heard)
        return _told_by_motion(session, file, compared, inputs, clocks)
    sound = heard.evidence() if heard is not None else None
    prior = prior_moved(compared.prior, file.start_s) if compared.prior is not None else None
    if heard is not None and heard.is_usable:
        verdict, clock_map = by_sound(heard, compared.epoch)
        errors = sound_errors(heard)
    elif prior is not None and found is None and prior.sigma_s <= CLOCKS_SERVE_S:
        verdict, clock_map = by_clocks(prior, compared.epoch, float(file.frame_times_s[-1]))
        errors = clock_errors(prior)
    elif found is not None:  # refused, with all that the gyroscopes said
        compared = replace(compared, found=_of_chapter(file, compared), heard=heard)
        return _told_by_motion(session, file, compared, inputs, clocks)
    else:
        return replace(refused(compared.problem, inputs=inputs), sound=sound, clocks=clocks), {}
    if clock_map is not None:
        _place(session, file, clock_map, compared.master)
    verdict = replace(verdict, reasons=(compared.problem, *verdict.reasons))
    answer = by_verdict(verdict, clock_map, float(file.frame_times_s[-1]), inputs=inputs)
    return replace(answer, epoch_ticks=compared.epoch, errors=errors, sound=sound, clocks=clocks), {}


def _of_chapter(file: CameraFile, compared: Compared) -> PairAlignment:
    """The answer for a clip that is one file is the file's; else the chapter's part of it."""
    found, clip, gyro = compared.found, compared.clip, compared.master.gyro
    assert found is not None
    assert gyro is not None
    if len(clip.readable) == 1:
        return found
    joints = tuple(one.start_s for one in clip.readable if one.is_loose)
    seconds = float(file.frame_times_s[-1])
    return of_chapter(found, gyro, file.start_s, seconds, joints_s=joints)


def _said_of(clip: ClockEvidence, start_s: float) -> ClockEvidence:
    """What the clocks said of the clip, as said of a chapter's first picture."""

    def later(prior_s: float | None) -> float | None:
        return prior_s + start_s if prior_s is not None else None

    told = tuple(replace(one, prior_s=later(one.prior_s)) for one in clip.statements or ())
    return replace(clip, prior_s=later(clip.prior_s), statements=told)


def _told_by_motion(
    session: Session,
    file: CameraFile,
    compared: Compared,
    inputs: list[Input],
    clocks: ClockEvidence,
) -> tuple[Alignment, dict[str, Any]]:
    gyro = compared.master.gyro
    assert gyro is not None
    assert compared.found is not None
    found, heard = compared.found, compared.heard
    if found.clock_map is not None:
        _place(session, file, found.clock_map, compared.master)
    body = pair_aligned(
        found,
        epoch_ticks=gyro.epoch_ticks,
        last_t_s=file.last_gyro_s,
        headset=_gyro_report(compared.master),
        camera=compared.clip.gyro_report | _late_words(file),
        inputs=inputs,
        clocks=clocks,
        systematic=BOTH_FILMS if isinstance(compared.master, Reference) else SYSTEMATIC,
    )
    return replace(body, sound=heard.evidence() if heard is not None else None), plot_arrays(found)


def _gyro_report(master: Master) -> dict[str, Any]:
    """What the certificate says of the gyroscope that others are compared with."""
    if isinstance(master, Reference):
        return master.clip.gyro_report
    assert master.gyro is not None
    return master.gyro.repair.report() | ({"stamp": HEAD_POSE} if master.gyro.source == HEAD_POSE else {})


def _late_words(file: CameraFile) -> dict[str, float]:
    """Report by how much a file's own telemetry lies too late, for those who read it alone."""
    return {"late_s": round(file.telemetry_late_s, 6)} if abs(file.telemetry_late_s) > LATE_NOTED_S else {}


def _place(session: Session, file: CameraFile, clock_map: ClockMap, master: Master) -> None:
    session.maps[file.source] = clock_map
    session.rides_with[file.source] = master


def _inputs(session: Session, clip: CameraClip, master: Master | None) -> list[Input]:
    """What the answer rests on: the headset's gyroscope or the reference's films, and all files of the clip."""
    known = session.recording.manifest.get("files") or {}
    reference = master.clip.readable if isinstance(master, Reference) else ()
    inputs = [
        Input(file.relative, facts["sha256"] if (facts := known.get(file.relative)) else None)
        for file in (*reference, *clip.files)
    ]
    if isinstance(master, Headset) and GYROSCOPE in master.inertial:
        digest = master.inertial[GYROSCOPE].sha256
        inputs.insert(0, Input(f"{master.name}/{GYROSCOPE}", digest))
    return inputs


def _missing_cameras(session: Session) -> list[Alignment]:
    """A camera that was armed and left no file is said, and each file that was recorded and is not here."""
    folder, manifest = session.recording.readable, session.recording.manifest
    devices = manifest.get("devices") or {}
    armed = [name for name, device in devices.items() if device.get("kind") == "gopro"]
    missing = [name for name in armed if not any(file.device == name for file in session.cameras)]
    lost = missing_files(folder, promised_files(folder, manifest))
    apart = [name for name in lost if name.partition("/")[0] in set(armed) - set(missing)]
    said = {name: f"{name} was recording, but none of its files is here" for name in missing}
    said |= {name: f"{name.rpartition('/')[2]} was recorded, but is not here" for name in apart}
    return [_lost(session, name, why) for name, why in said.items()]


def _lost(session: Session, source: str, why: str) -> Alignment:
    answer = replace(refused(why), source=source, master=_no_master(session))
    if not session.headsets:
        answer = replace(answer, master_clock=REFERENCE_CLOCK)
    _write(session, answer, {})
    return answer


def _file_name(session: Session, source: str) -> str:
    """`<file name>.json`; with the camera's name before it where two cameras have files."""
    device, _, name = source.partition("/")
    several = len({file.device for file in session.cameras}) > 1
    return f"{device}-{name}.json" if name and several else f"{name or device}.json"
