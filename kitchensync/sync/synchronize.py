"""Synchronize one recording: align every camera file with the headset, index the frames, write `sync/`.

Without a headset, cameras are aligned with the first camera that recorded motion.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from kitchensync.sensors.hololens.catalogue import GYROSCOPE
from kitchensync.storage.copies.read_through import missing_files, promised_files
from kitchensync.storage.manifest import write_json
from kitchensync.storage.recording import open_recording
from kitchensync.storage.timeline.alignment import ALIGNED, CHECK, NOT_ALIGNED, Alignment, ChapterPlace, Input
from kitchensync.storage.timeline.alignment_evidence import ClockEvidence
from kitchensync.storage.timeline.bridge import Bridge
from kitchensync.storage.timeline.clock_map import REFERENCE_CLOCK
from kitchensync.sync.align.chapters import heard_moved, of_chapter
from kitchensync.sync.align.headset_gyro import HEAD_POSE
from kitchensync.sync.align.pair_alignment import PairAlignment, by_clocks, by_sound
from kitchensync.sync.answers import RecordingAnswer, plain
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
    PlotArrays,
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
CLOCKS_SERVE_S = 0.5  # maximum uncertainty of usable clocks


def synchronize(path: Path | str, *, master: str | None = None) -> RecordingAnswer:
    """Align and index one recording; return its entry of `sync/1`.

    `master` is the stream whose frames are indexed: `pv`, `gopro`, or a name such as `hololens-b/pv`; the default is
    PV if it was recorded. Writes only below `sync/`, as one set: alignments with their plot data, `index.parquet`,
    `poses.parquet`, and the state. There is no index if nothing could be aligned. Raises NotARecording, OSError,
    after which the earlier files are unchanged.
    """
    inputs = fingerprint(Path(path), master)  # first, as files that are added meanwhile are not in the answer
    with open_recording(path) as recording, new_set(recording.path) as folder:
        session = open_session(recording, master)
        session.folder = folder
        answer = _synchronized(session, master)
        remember(folder, inputs, answer)
        return answer


def _synchronized(session: Session, master: str | None) -> RecordingAnswer:
    recording = session.recording
    kinds = [device.get("kind") for device in (recording.manifest.get("devices") or {}).values()]
    moving = {clip.camera for clip in session.clips if clip.gyro is not None}
    pairs: list[Alignment] = []
    if len(moving) > 1 or sum(kind in ("hololens", "gopro") for kind in kinds) > 1:
        pairs = [_bridged(session, headset) for headset in session.headsets if headset is not session.main]
        own = {reference.clip.camera for reference in session.references}
        for clip in session.clips:
            is_expected = (
                clip.camera == clip.device or clip.gyro is not None
            )  # recorded, or adopted with motion
            if clip.camera not in own and is_expected:
                pairs += _align_clip(session, clip)
        pairs += _missing_cameras(session)
    status = next((s for s in ORDER if any(pair.status == s for pair in pairs)), NOTHING)
    answer: RecordingAnswer = {"recording": recording.id, "status": status, "path": str(recording.path)}
    # the headset is indexed even if a film is lost
    readable = {clip.camera for clip in session.clips if clip.readable}
    was_compared = len(session.headsets) > 1 or len(readable) > (0 if session.headsets else 1)
    is_lost = bool(pairs) and not was_compared
    usable = not pairs or is_lost or bool(session.maps or session.bridges)
    answer |= write_tables(session, master=master, usable=usable)
    if left_out := _left_out(session, is_lost=is_lost):
        answer["reasons"] = [*answer.get("reasons", []), *left_out]
    answer["events"] = write_event_frames(session, pairs)
    answer["pairs"] = [plain(pair.as_object()) for pair in pairs]
    return answer


def _left_out(session: Session, *, is_lost: bool) -> list[str]:
    """Return why films are not in the index: unreadable ones and, without a headset, clips on another media time."""
    reasons = [file.problem for file in session.cameras if file.problem and not file.has_frames]
    reasons += [text for clip in session.clips if clip.gyro is None for text in clip.noted]
    reasons += [clip.problem for clip in session.clips if clip.is_wrong_pace]
    if session.main is None:
        others = [clip for clip in session.clips if clip.readable and clip is not session.own_clip]
        reasons += [
            f"{file.source} is a clip of its own: the index does not hold it"
            + (f" ({clip.problem})" if clip.problem else "")
            for clip in others
            for file in clip.files
            if not session.is_on_tables(file.source)
        ]
    elif is_lost:
        reasons.append("no film can be read: the index holds the headset alone")
    return reasons


def _bridged(session: Session, headset: Headset) -> Alignment:
    """Align another headset with the main one through the host, write its file, return its alignment."""
    main = session.main
    assert main is not None
    bridge = Bridge(headset.host, main.host) if headset.host is not None and main.host is not None else None
    last_ticks = max((int(stream.index["device_ticks"].max()) for _, stream in headset.streams), default=0)
    answer = bridged(bridge, headset.name, main.epoch, headset.epoch, last_ticks)
    if answer.status != NOT_ALIGNED and bridge is not None:
        session.bridges[headset.name] = bridge
    return _written(session, replace(answer, source=headset.name, master=main.name))


def _align_clip(session: Session, clip: CameraClip) -> list[Alignment]:
    """Compare a clip as a whole, then write and return the alignment of each chapter."""
    compared = compare(session, clip) if clip.readable and not clip.is_wrong_pace else None
    of_reference: list[str] = []
    if compared is not None and isinstance(compared.master, Reference):
        of_reference = [f"{compared.master.name}: {text}" for text in compared.master.clip.warnings]
    answers = []
    for file in clip.files:
        body, plots = _of_file(session, clip, file, compared)
        body = _with_picture_latency(session, file, body)
        answer = replace(
            body,
            source=file.source,
            master=compared.master.motion if compared else _no_master(session),
            warnings=(*body.warnings, *clip.warnings, *of_reference),
            other_headsets=compared.others if compared is not None else (),
            clues=clip.clues,
        )
        if not session.headsets:
            answer = replace(answer, master_clock=REFERENCE_CLOCK, epoch_ticks=None)
        if len(clip.files) > 1:
            place = ChapterPlace(file.start_s, tuple(chapter.path.name for chapter in clip.files))
            answer = replace(answer, chapter=place)
        answers.append(_written(session, answer, plots))
    return answers


def _no_master(session: Session) -> str:
    """Return the name of the master of a file that could not be compared."""
    return next(
        (master.motion for master in (session.main, *session.references) if master), f"none/{GYROSCOPE}"
    )


def _written(session: Session, answer: Alignment, plots: PlotArrays | None = None) -> Alignment:
    """Write `<file name>.json`, prefixed with the camera's name if several cameras have files; return the answer."""
    device, _, name = answer.source.partition("/")
    several = len({file.device for file in session.cameras}) > 1
    stem = f"{device}-{name}" if name and several else name or device
    folder = session.folder / "alignment"
    folder.mkdir(parents=True, exist_ok=True)
    if plots:
        np.savez_compressed(folder / f"{stem}.plot.npz", **plots)  # type: ignore[arg-type]
    write_json(folder / f"{stem}.json", plain(answer.as_object()))
    return answer


def _with_picture_latency(session: Session, file: CameraFile, answer: Alignment) -> Alignment:
    """Apply the latency of a camera by `sync-camera`, and without a headset that of the reference."""
    if file.source not in session.maps:
        return answer
    master = session.rides_with[file.source]
    measured_files = {GYRO_TO_FRAME: [file]}
    if isinstance(master, Reference):
        measured_files[REFERENCE_PICTURES.part] = list(master.clip.readable)
    for part, files in measured_files.items():
        for measured_file in files:
            if (measured := stored_latency(session.recording.path, measured_file.path)) is not None:
                session.picture_late_s[measured_file.source] = float(measured["latency_ms"]) / 1e3
                answer = with_picture_latency(answer, measured, part)
    return answer


def _of_file(
    session: Session, clip: CameraClip, file: CameraFile, compared: Compared | None
) -> tuple[Alignment, PlotArrays]:
    """Return the alignment of one file, and its plot data."""
    inputs = _inputs(session, clip, compared.master if compared else None)
    if not file.has_frames or clip.is_wrong_pace:
        return refused(clip.problem if file.has_frames else file.problem, inputs=inputs), {}
    if compared is None:
        why = "no headset and no camera's motion was recorded to align with"
        if session.headsets:
            why = "the headset sent nothing to align with"
        return refused(why, inputs=inputs), {}
    pair, clocks = compared.pair, _moved(compared.timestamps, file.start_s)
    heard = heard_moved(compared.heard, file.start_s) if compared.heard is not None else None
    by_motion = pair is not None and (pair.clock_map is not None or pair.saw_motion)
    by_ear = heard is not None and heard.is_usable
    if pair is not None and (by_motion or not by_ear):  # also if refused, with the evidence of the gyroscopes
        return _by_motion(session, file, replace(compared, heard=heard), pair, inputs, clocks)
    sound = heard.evidence() if heard is not None else None
    prior = compared.prior
    if heard is not None and by_ear:
        verdict, clock_map = by_sound(heard, compared.epoch)
        errors = sound_errors(heard)
    elif prior is not None and prior.sigma_s <= CLOCKS_SERVE_S:
        prior = replace(prior, tau0_s=prior.tau0_s + file.start_s)
        verdict, clock_map = by_clocks(prior, compared.epoch, float(file.frame_times_s[-1]))
        errors = clock_errors(prior)
    else:
        return replace(refused(compared.problem, inputs=inputs), sound=sound, clocks=clocks), {}
    if clock_map is not None:
        session.place(file, clock_map, compared.master)
    verdict = replace(verdict, reasons=(compared.problem, *verdict.reasons))
    answer = by_verdict(verdict, clock_map, float(file.frame_times_s[-1]), inputs=inputs)
    return replace(answer, epoch_ticks=compared.epoch, errors=errors, sound=sound, clocks=clocks), {}


def _moved(clip: ClockEvidence, start_s: float) -> ClockEvidence:
    """Shift the clock evidence of a clip to a chapter's first picture."""
    statements = tuple(
        replace(statement, prior_s=statement.prior_s + start_s)
        if statement.prior_s is not None
        else statement
        for statement in clip.statements or ()
    )
    prior_s = clip.prior_s + start_s if clip.prior_s is not None else None
    return replace(clip, prior_s=prior_s, statements=statements)


def _by_motion(
    session: Session,
    file: CameraFile,
    compared: Compared,
    pair: PairAlignment,
    inputs: list[Input],
    clocks: ClockEvidence,
) -> tuple[Alignment, PlotArrays]:
    """Return the alignment by the gyroscopes, for one chapter of a clip."""
    master, clip, heard = compared.master, compared.clip, compared.heard
    assert master.gyro is not None
    if len(clip.readable) != 1:
        joints = tuple(chapter.start_s for chapter in clip.readable if chapter.is_loose)
        seconds = float(file.frame_times_s[-1])
        pair = of_chapter(pair, master.gyro, file.start_s, seconds, joints_s=joints)
    if pair.clock_map is not None:
        session.place(file, pair.clock_map, master)
    if isinstance(master, Reference):
        report = master.clip.gyro_report
    else:
        report = master.gyro.repair.report() | (
            {"stamp": HEAD_POSE} if master.gyro.source == HEAD_POSE else {}
        )
    late_s = file.telemetry_late_s  # for readers of the file's own telemetry
    body = pair_aligned(
        pair,
        epoch_ticks=master.gyro.epoch_ticks,
        last_t_s=file.last_gyro_s,
        headset=report,
        camera=clip.gyro_report | ({"late_s": round(late_s, 6)} if abs(late_s) > LATE_NOTED_S else {}),
        inputs=inputs,
        clocks=clocks,
        systematic=BOTH_FILMS if isinstance(master, Reference) else SYSTEMATIC,
    )
    return replace(body, sound=heard.evidence() if heard is not None else None), plot_arrays(pair)


def _inputs(session: Session, clip: CameraClip, master: Master | None) -> list[Input]:
    """Return the inputs: the headset's gyroscope or the reference's films, and all files of the clip."""
    files = session.recording.manifest.get("files") or {}
    reference = master.clip.readable if isinstance(master, Reference) else ()
    inputs = [
        Input(file.relative, facts["sha256"] if (facts := files.get(file.relative)) else None)
        for file in (*reference, *clip.files)
    ]
    if isinstance(master, Headset) and GYROSCOPE in master.inertial:
        digest = master.inertial[GYROSCOPE].sha256
        inputs.insert(0, Input(f"{master.name}/{GYROSCOPE}", digest))
    return inputs


def _missing_cameras(session: Session) -> list[Alignment]:
    """Refuse each armed camera without files, and each recorded file that is missing."""
    folder, manifest = session.recording.readable, session.recording.manifest
    devices = manifest.get("devices") or {}
    armed = [name for name, device in devices.items() if device.get("kind") == "gopro"]
    missing = [name for name in armed if not any(file.device == name for file in session.cameras)]
    lost = missing_files(folder, promised_files(folder, manifest))
    lost_files = [name for name in lost if name.partition("/")[0] in set(armed) - set(missing)]
    reasons = {name: f"{name} was recording, but none of its files is here" for name in missing}
    reasons |= {name: f"{name.rpartition('/')[2]} was recorded, but is not here" for name in lost_files}
    answers = []
    for name, why in reasons.items():
        answer = replace(refused(why), source=name, master=_no_master(session))
        if not session.headsets:
            answer = replace(answer, master_clock=REFERENCE_CLOCK)
        answers.append(_written(session, answer))
    return answers
