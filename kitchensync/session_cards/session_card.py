"""The session card in two stages: the first before the videos are copied, the final one after."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import NotRequired, TypedDict, cast

import numpy as np

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.card_names import proxy_name
from kitchensync.shell.files_on_disk import matching
from kitchensync.storage.consent import Purpose, require_consent
from kitchensync.storage.copies.store_states import StoreReport, store_states
from kitchensync.storage.errors import StorageError
from kitchensync.storage.events import read_events
from kitchensync.storage.manifest import read_manifest
from kitchensync.storage.names import MANIFEST, MEDIA, WORK
from kitchensync.storage.reading.clip_starts import read_media
from kitchensync.storage.recording_files.kept_session_card import (
    FINAL,
    FIRST,
    Acknowledgement,
    cameras_of,
    keep_cards,
    kept_cards,
    stage_of,
)
from kitchensync.storage.timeline.alignment import Alignment
from kitchensync.storage.verify import FAIL, PASS, WARN, verify
from kitchensync.storage.verify.by_life import RecordingVerification
from kitchensync.sync.answers import RecordingAnswer
from kitchensync.sync.errors import SyncError
from kitchensync.sync.synchronize import synchronize

PROXIES = "proxies"
NOT_COPIED = ("sync", "annotations")
"""Folders of results, which are not linked."""
AGREES_MS = 50.0
"""Largest difference of two alignments that agree, milliseconds, unless their bounds are larger."""
WORTH = {"aligned": PASS, "check": WARN, "nothing_to_align": PASS}


class CardLine(TypedDict):
    """A stream or camera."""

    name: str
    status: str
    coverage: float | None
    "Share of the session."
    reasons: list[str]


class CardAlignment(TypedDict):
    """The alignment of videos and headset."""

    verdict: str
    status: str
    by: str
    "the film, or the camera's small copy."
    reasons: list[str]
    bound_ms: float | None
    bounds: str
    "The bounds in words."
    samples: dict[str, list[list[float]]]
    "Video: its seconds, and ticks of the headset."


class CardEvent(TypedDict):
    """An event of the recording."""

    at_s: float
    "Seconds from the start."
    kind: str
    by: str


class CardComparison(TypedDict):
    """Whether the final card agrees with the first."""

    agrees: bool
    differs: list[str]


class KeptCard(TypedDict):
    """A card as it is kept in the recording."""

    schema: str
    recording: str
    stage: str
    "first or final."
    status: str
    "PASS, WARN or FAIL."
    reasons: list[str]
    session_s: float | None
    lines: list[CardLine]
    "The worst first."
    alignment: CardAlignment | None
    good_for: list[str]
    events: list[CardEvent]
    repeat: list[str]
    "What to do before the participant leaves."
    thumbnails: list[str]
    made_in_s: float
    agrees: NotRequired[bool]
    "Of a final card: whether it agrees with the first."
    differs: NotRequired[list[str]]


class SessionCard(KeptCard):
    """The object `card/1`."""

    acknowledged: Acknowledgement | None
    stores: list[StoreReport]


def make_card(recording: Path, *, again: bool = False) -> SessionCard:
    """Return the card of a recording at its current stage, made if it is not saved yet, or `again`.

    Raises StorageError; Withdrawn and NotPermitted if its consent does not allow it.
    """
    require_consent(recording, Purpose.LOOK)
    stage = stage_of(recording)
    kept = kept_cards(recording)
    if again or stage not in kept:
        kept[stage] = _made(recording, stage)
        if stage == FINAL and FIRST in kept:
            kept[FINAL] |= compared(kept[FIRST], kept[FINAL])
        keep_cards(recording, kept)
    now = {"acknowledged": read_manifest(recording).get("card"), "stores": store_states(recording)}
    return cast(SessionCard, kept[stage] | now)


def _made(recording: Path, stage: str) -> KeptCard:
    begin_s = time.monotonic()
    report = verify(recording)
    answer = synchronize(recording) if stage == FINAL else provisional_alignment(recording)
    # The videos of these cameras are not copied yet, so their absence is no problem.
    coming = set() if stage == FINAL else cameras_of(recording).keys()
    lines = _lines(report, stage)
    alignment = _alignment(answer, stage)
    statuses = [
        status for subject, status in report["trouble"].items() if subject.split("/")[0] not in coming
    ]
    statuses += [alignment["status"]] if alignment else []
    reasons = [
        reason for reason in report["reasons"] if reason.split(maxsplit=1)[0].rstrip(":") not in coming
    ]
    return {
        "schema": "card/1",
        "recording": recording.name,
        "stage": stage,
        "status": max([PASS, *statuses], key=(PASS, WARN, FAIL).index),
        "reasons": reasons,
        "session_s": report.get("session_s"),
        "lines": lines,
        "alignment": alignment,
        "good_for": report.get("good_for", []),
        "events": _timeline(recording),
        "repeat": _to_repeat(lines, alignment, reasons),
        "thumbnails": [
            str(path.relative_to(recording)) for path in matching(recording, f"*/{PROXIES}/*.THM")
        ],
        "made_in_s": round(time.monotonic() - begin_s, 1),
    }


def _lines(report: RecordingVerification, stage: str) -> list[CardLine]:
    """Return a line for each stream and camera, the worst first: status, coverage, reasons."""
    facts = report["streams"] | (report.get("cameras", {}) if stage == FINAL else {})
    lines: list[CardLine] = [
        {
            "name": name,
            "status": report["trouble"].get(name, PASS),
            "coverage": source.get("coverage"),
            "reasons": [
                reason for reason in report["reasons"] if reason.startswith((f"{name}:", f"{name} "))
            ],
        }
        for name, source in facts.items()
    ]
    return sorted(lines, key=lambda line: (-(PASS, WARN, FAIL).index(line["status"]), line["name"]))


def _alignment(aligned: RecordingAnswer | None, stage: str) -> CardAlignment | None:
    """Return the alignment of videos and headset: verdict, method, bounds, and the samples of each video."""
    if aligned is None:
        return None
    pairs = aligned.get("pairs", [])
    return {
        "verdict": aligned["status"],
        "status": WORTH.get(aligned["status"], FAIL),
        "by": "the film" if stage == FINAL else "the camera's small copy",
        "reasons": [reason for pair in pairs for reason in pair.get("reasons", [])]
        or aligned.get("reasons", []),
        "bound_ms": max(
            (bound for pair in pairs if (bound := Alignment.from_object(pair).bound95_ms) is not None),
            default=None,
        ),
        "bounds": next(
            (words for pair in pairs if (words := Alignment.from_object(pair).bounds_in_words)), ""
        ),
        "samples": {pair["source"]: pair["samples"] for pair in pairs if pair.get("samples")},
    }


def compared(first: KeptCard, final: KeptCard) -> CardComparison:
    """Return whether the final card agrees with the first, and their differences."""
    differs = []
    if (first["status"], final["status"]) != (PASS, PASS) and first["status"] != final["status"]:
        new = [reason for reason in final["reasons"] if reason not in first["reasons"]]
        differs.append(
            f"the status changed from {first['status']} to {final['status']}: {'; '.join(new) or 'fewer problems'}"
        )
    early, late = first["alignment"], final["alignment"]
    if early is not None and late is not None:
        differs += _moved(early, late)
    return {"agrees": not differs, "differs": differs}


def _moved(early: CardAlignment, late: CardAlignment) -> list[str]:
    """Return a message for each video that is further from its small copy's alignment than the bounds allow."""
    if early["verdict"] != late["verdict"]:
        return [
            f"the alignment is {late['verdict']} with the video; it was {early['verdict']} with the small copy"
        ]
    allowed_ms = max(AGREES_MS, (early["bound_ms"] or 0.0) + (late["bound_ms"] or 0.0))
    differences = []
    for source, rows in late["samples"].items():
        before = np.array(early["samples"].get(source, []))
        if not len(before):
            differences.append(f"{source}: its small copy was not aligned")
            continue
        now = np.array(rows)
        ticks = np.interp(now[:, 0], before[:, 0], before[:, 1])
        off_ms = float(np.abs(now[:, 1] - ticks).max()) / 1e4
        if off_ms > allowed_ms:
            differences.append(f"{source}: {off_ms:.0f} ms away from the alignment of its small copy")
    return differences


def _timeline(recording: Path) -> list[CardEvent]:
    """Return the events in seconds from the start of the recording, without their texts.

    Empty if the manifest has no start time.
    """
    start_ns = (read_manifest(recording).get("started") or {}).get("host_ns")
    if start_ns is None:
        return []
    return [
        {"at_s": round((event["host_ns"] - start_ns) / 1e9, 1), "kind": event["kind"], "by": event["writer"]}
        for event in read_events(recording)
    ]


def _to_repeat(lines: list[CardLine], alignment: CardAlignment | None, reasons: list[str]) -> list[str]:
    """Return what to repeat before the participant leaves."""
    actions = [f"record again: {line['name']} is unusable" for line in lines if line["status"] == FAIL]
    if alignment is not None and alignment["status"] == FAIL:
        actions.append(
            "let the participant turn the head quickly left and right and clap, both cameras on, then stop again"
        )
    return actions or (["record again"] if any("damaged" in reason for reason in reasons) else [])


def provisional_alignment(recording: Path) -> RecordingAnswer | None:
    """Align a recording with small copies in place of its videos; None without small copies.

    A small copy has the same frame times, sound and motion data as its video.
    """
    small = {}  # path of a copy -> name of its video
    for media in sorted(recording.glob(f"*/{MEDIA}")):
        for entry in read_media(recording, media.parent.name).get("small") or []:
            path = media.parent / PROXIES / (proxy_name(str(entry)) or "")
            if path.is_file():
                small[path] = str(entry)
    if not small:
        return None
    work = recording.parent / WORK  # on the same disk, so that files can be linked
    work.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="card-", dir=work) as folder:
        copy = Path(folder) / recording.name
        _copy_with_small(recording, copy, small)
        try:
            return synchronize(copy)
        except (SyncError, StorageError, SensorError, OSError) as error:
            return {"status": "not_aligned", "reasons": [str(error)]}


def _copy_with_small(recording: Path, folder: Path, small: dict[Path, str]) -> None:
    """Link a recording's files into a folder, with the small copies in place of the videos."""
    folder.mkdir()
    cameras = {path.parent.parent for path in small}
    for path in recording.iterdir():
        if path.is_dir() and path.name not in NOT_COPIED and path not in cameras:
            shutil.copytree(path, folder / path.name, copy_function=_link_or_copy)
    shutil.copyfile(recording / MANIFEST, folder / MANIFEST)
    for camera in cameras:
        (folder / camera.name).mkdir()
        shutil.copyfile(camera / MEDIA, folder / camera.name / MEDIA)
    for path, video in small.items():
        _link_or_copy(path, folder / path.parent.parent.name / video)


def _link_or_copy(path: str | Path, target: str | Path) -> None:
    """Hard-link a file, or copy it if the disk cannot link."""
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)
