"""Synchronize one recording: align every camera file with the headset, index the frames, write `sync/`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sensors.hololens.catalogue import GYROSCOPE
from storage.copies.promised import missing_files
from storage.manifest import write_json
from storage.recording import Recording, open_recording
from storage.timeline.clock_map import ClockMap, sample_rows
from sync.align.bridge import Bridge
from sync.align.chapters import heard_moved, of_chapter, prior_moved
from sync.align.fusion import by_clocks, by_sound
from sync.align.headset_gyro import HEAD_POSE
from sync.align.pair_alignment import PairAlignment
from sync.answers import plain
from sync.recording.cameras import CameraFile, CameraTake
from sync.recording.compare import Compared, compare
from sync.recording.latency_store import stored_latency
from sync.recording.session import Headset, Session, open_session
from sync.result.new_set import new_set
from sync.result.result import (
    alignment_object,
    bridge_object,
    clock_sigma,
    fallback_object,
    plot_arrays,
    refusal_object,
    sound_sigma,
    with_picture_latency,
)
from sync.result.state import fingerprint, remember
from sync.tables.event_frames import write_event_frames
from sync.tables.write_tables import write_tables

ORDER = ("not_aligned", "check", "aligned")
NOTHING = "nothing_to_align"
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
    pairs: list[dict[str, Any]] = []
    if not _is_alone(session):
        pairs = [_bridged(session, headset) for headset in session.headsets if headset is not session.main]
        pairs += [pair for take in session.takes for pair in _align_take(session, take)]
        pairs += _missing_cameras(session)
    status = next((s for s in ORDER if any(pair["status"] == s for pair in pairs)), NOTHING)
    answer: dict[str, Any] = {"recording": recording.id, "status": status, "path": str(recording.path)}
    is_lost = bool(pairs) and not _was_compared(session)
    usable = not pairs or is_lost or bool(session.maps or session.bridges)
    answer |= write_tables(session, master=master, usable=usable)
    if told := _left_out(session, is_lost=is_lost):
        answer["reasons"] = [*answer.get("reasons", []), *told]
    answer["events"] = write_event_frames(session, pairs)
    return answer | {"pairs": pairs}


def _is_alone(session: Session) -> bool:
    """Tell whether only one device with a clock was armed: then there is nothing to align."""
    kinds = [device.get("kind") for device in (session.recording.manifest.get("devices") or {}).values()]
    return sum(kind in ("hololens", "gopro") for kind in kinds) < 2


def _was_compared(session: Session) -> bool:
    """Tell whether there was another device's data to compare; a lost film takes nothing from the headset."""
    return len(session.headsets) > 1 or any(take.readable for take in session.takes)


def _left_out(session: Session, *, is_lost: bool) -> list[str]:
    """Name the films that no index can hold: unreadable ones and, without a headset, other takes than the first."""
    told = [file.problem for file in session.cameras if file.problem and not file.has_frames]
    if session.main is None:
        others = [take for take in session.takes if take.readable][1:]
        names = [file.path.name for take in others for file in take.files]
        told += [f"{name} is a take of its own: the index holds the first take alone" for name in names]
        return told
    if is_lost:
        told.append("no film can be read: the index holds the headset alone")
    return told


def _bridged(session: Session, headset: Headset) -> dict[str, Any]:
    """Relate another headset to the main one through the host, write its file, return its alignment object."""
    main = session.main
    assert main is not None
    bridge = Bridge(headset.host, main.host) if headset.host is not None and main.host is not None else None
    answer = bridge_object(bridge, headset.name, main.epoch, headset.epoch, _last_ticks(headset))
    if answer["status"] != "not_aligned" and bridge is not None:
        session.bridges[headset.name] = bridge
    answer = {"source": headset.name, "master": main.name, **answer}
    _write(session, answer, {})
    return answer


def _last_ticks(headset: Headset) -> int:
    return max((int(stream.index["device_ticks"].max()) for _, stream in headset.streams), default=0)


def _align_take(session: Session, take: CameraTake) -> list[dict[str, Any]]:
    """Compare a take once, then say it chapter by chapter: write their files, return their alignment objects."""
    compared = compare(session, take) if take.readable else None
    answers = []
    for file in take.files:
        body, plots = _of_file(session, take, file, compared)
        body = _with_picture_latency(session, file, body)
        master = compared.headset.name if compared else session.main.name if session.main else "none"
        answer = {"source": file.source, "master": f"{master}/gyroscope", **body}
        answer["warnings"] = [*answer["warnings"], *take.warnings]
        if compared is not None and compared.others:
            answer["other_headsets"] = list(compared.others)
        if len(take.files) > 1:
            answer["take"] = {"start_s": file.start_s, "files": [one.path.name for one in take.files]}
        _write(session, answer, plots)
        answers.append(answer)
    return answers


def _write(session: Session, answer: dict[str, Any], plots: dict[str, Any]) -> None:
    target = session.folder / "alignment" / _file_name(session, answer["source"])
    target.parent.mkdir(parents=True, exist_ok=True)
    if plots:
        np.savez_compressed(target.with_name(target.name.removesuffix(".json") + ".plot.npz"), **plots)
    write_json(target, answer)


def _with_picture_latency(session: Session, file: CameraFile, answer: dict[str, Any]) -> dict[str, Any]:
    """Use what `sync-camera` measured of this camera, where the pictures were placed at all."""
    if file.source not in session.maps:
        return answer
    measured = stored_latency(session.recording.path, file.path)
    if measured is None:
        return answer
    session.picture_late_s[file.source] = float(measured["latency_ms"]) / 1e3
    return with_picture_latency(answer, measured)


def _of_file(
    session: Session, take: CameraTake, file: CameraFile, compared: Compared | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The alignment object of one file, and what its plot draws."""
    inputs = _inputs(session, take, compared.headset if compared else None)
    if not file.has_frames:
        return refusal_object(file.problem, inputs=inputs), {}
    if compared is None:
        sent = "the headset sent nothing" if session.headsets else "no headset was recorded"
        return refusal_object(f"{sent} to align with", inputs=inputs), {}
    timestamps = _said_of(compared.timestamps, file.start_s)
    found = compared.found
    heard = heard_moved(compared.heard, file.start_s) if compared.heard is not None else None
    if found is not None and (found.clock_map is not None or found.saw_motion):
        compared = replace(compared, found=_of_chapter(file, compared), heard=heard)
        return _told_by_motion(session, file, compared, inputs, timestamps)
    prior = prior_moved(compared.prior, file.start_s) if compared.prior is not None else None
    if heard is not None and heard.is_usable:
        verdict, clock_map = by_sound(heard, compared.epoch)
        sigma = sound_sigma(heard)
    elif prior is not None and found is None and prior.sigma_s <= CLOCKS_SERVE_S:
        verdict, clock_map = by_clocks(prior, compared.epoch, float(file.frame_times_s[-1]))
        sigma = clock_sigma(prior)
    elif found is not None:  # refused, with all that the gyroscopes said
        compared = replace(compared, found=_of_chapter(file, compared), heard=heard)
        return _told_by_motion(session, file, compared, inputs, timestamps)
    else:
        refused = refusal_object(compared.problem, inputs=inputs)
        audio = heard.as_object() if heard else None
        return refused | {"evidence": plain({"gyro": None, "audio": audio, "timestamps": timestamps})}, {}
    if clock_map is not None:
        _place(session, file, clock_map, compared.headset)
    verdict = replace(verdict, reasons=(compared.problem, *verdict.reasons))
    answer = fallback_object(verdict, clock_map, sigma=sigma, inputs=inputs)
    evidence = {"gyro": None, "audio": heard.as_object() if heard else None, "timestamps": timestamps}
    samples = sample_rows(clock_map, float(file.frame_times_s[-1])) if clock_map else []
    return plain(answer | {"epoch_hl2_qpc": compared.epoch, "evidence": evidence, "samples": samples}), {}


def _of_chapter(file: CameraFile, compared: Compared) -> PairAlignment:
    """The answer for a take that is one file is the file's; else the chapter's part of it."""
    found, take, gyro = compared.found, compared.take, compared.headset.gyro
    assert found is not None
    assert gyro is not None
    if len(take.readable) == 1:
        return found
    joints = tuple(one.start_s for one in take.readable if one.is_loose)
    seconds = float(file.frame_times_s[-1])
    return of_chapter(found, gyro, file.start_s, seconds, joints_s=joints)


def _said_of(timestamps: dict[str, Any], start_s: float) -> dict[str, Any]:
    """What the clocks said of the take, as said of a chapter's first picture."""

    def later(said: dict[str, Any]) -> dict[str, Any]:
        return said | {"prior_s": said["prior_s"] + start_s if said["prior_s"] is not None else None}

    return later(timestamps) | {"statements": [later(said) for said in timestamps["statements"]]}


def _told_by_motion(
    session: Session,
    file: CameraFile,
    compared: Compared,
    inputs: list[dict[str, Any]],
    timestamps: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    gyro = compared.headset.gyro
    assert gyro is not None
    assert compared.found is not None
    found, heard = compared.found, compared.heard
    if found.clock_map is not None:
        _place(session, file, found.clock_map, compared.headset)
    by_pose = gyro.source == HEAD_POSE
    body = alignment_object(
        found,
        epoch_ticks=gyro.epoch_ticks,
        last_t_s=file.last_gyro_s,
        headset=gyro.repair.report() | ({"stamp": HEAD_POSE} if by_pose else {}),
        camera=compared.take.gyro_report,
        inputs=inputs,
        timestamps=timestamps,
    )
    body["evidence"]["audio"] = plain(heard.as_object()) if heard else None
    return body, plot_arrays(found)


def _place(session: Session, file: CameraFile, clock_map: ClockMap, headset: Headset) -> None:
    session.maps[file.source] = clock_map
    session.rides_with[file.source] = headset


def _inputs(session: Session, take: CameraTake, headset: Headset | None) -> list[dict[str, Any]]:
    """What the answer rests on: the headset's gyroscope, and all files of the take."""
    known = session.recording.manifest.get("files") or {}
    inputs: list[dict[str, Any]] = [
        {"path": file.relative, "sha256": (known.get(file.relative) or {}).get("sha256")}
        for file in take.files
    ]
    if headset is not None and GYROSCOPE in headset.inertial:
        digest = headset.inertial[GYROSCOPE].sha256
        inputs.insert(0, {"path": f"{headset.name}/{GYROSCOPE}", "sha256": digest})
    return inputs


def _missing_cameras(session: Session) -> list[dict[str, Any]]:
    """A camera that was armed and left no file is said, and each file that was recorded and is not here."""
    devices = session.recording.manifest.get("devices") or {}
    armed = [name for name, device in devices.items() if device.get("kind") == "gopro"]
    missing = [name for name in armed if not any(file.device == name for file in session.cameras)]
    lost = missing_files(session.recording.readable, session.recording.manifest)
    apart = [name for name in lost if name.partition("/")[0] in set(armed) - set(missing)]
    said = {name: f"{name} was recording, but none of its files is here" for name in missing}
    said |= {name: f"{name.rpartition('/')[2]} was recorded, but is not here" for name in apart}
    return [_lost(session, name, why) for name, why in said.items()]


def _lost(session: Session, source: str, why: str) -> dict[str, Any]:
    answer = {"source": source, "master": f"{session.main.name if session.main else 'none'}/gyroscope"}
    answer |= refusal_object(why, inputs=[])
    _write(session, answer, {})
    return answer


def _file_name(session: Session, source: str) -> str:
    """`<file name>.json`; with the camera's name before it where two cameras have files."""
    device, _, name = source.partition("/")
    several = len({file.device for file in session.cameras}) > 1
    return f"{device}-{name}.json" if name and several else f"{name or device}.json"
