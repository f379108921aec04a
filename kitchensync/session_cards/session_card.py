"""The card in two stages: the first while films are on their way, the final one when they are here."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.card_names import proxy_name
from kitchensync.shell.files_on_disk import matching
from kitchensync.storage.consent import Purpose, require_consent
from kitchensync.storage.copies.store_states import store_states
from kitchensync.storage.errors import StorageError
from kitchensync.storage.events import read_events
from kitchensync.storage.manifest import read_manifest
from kitchensync.storage.names import MANIFEST, MEDIA, WORK
from kitchensync.storage.reading.shutter_openings import read_media
from kitchensync.storage.recording_files.kept_session_card import (
    FINAL,
    FIRST,
    cameras_of,
    keep_cards,
    kept_cards,
    stage_of,
)
from kitchensync.storage.timeline.alignment import Alignment
from kitchensync.storage.verify import FAIL, PASS, WARN, verify
from kitchensync.sync.answers import RecordingAnswer
from kitchensync.sync.errors import SyncError
from kitchensync.sync.synchronize import synchronize

AGREES_MS = 50.0
"""Two alignments that differ by less than their bounds, or less than this, say the same."""
WORTH = {"aligned": PASS, "check": WARN, "nothing_to_align": PASS}


def make_card(recording: Path, *, again: bool = False) -> dict[str, Any]:
    """Report what a recording is worth, as far as that is known now; a kept card of its stage is not made anew.

    Raises StorageError; Withdrawn and NotPermitted where nobody may look.
    """
    require_consent(recording, Purpose.LOOK)
    stage = stage_of(recording)
    kept = kept_cards(recording)
    if again or stage not in kept:
        kept[stage] = _made(recording, stage)
        if stage == FINAL and FIRST in kept:
            kept[FINAL] |= compared(kept[FIRST], kept[FINAL])
        keep_cards(recording, kept)
    now = {
        "acknowledged": read_manifest(recording).get("card"),
        "stores": [asdict(one) for one in store_states(recording)],
    }
    return kept[stage] | now


def _made(recording: Path, stage: str) -> dict[str, Any]:
    begin_s = time.monotonic()
    seen = verify(recording)
    aligned = synchronize(recording) if stage == FINAL else provisional_alignment(recording)
    coming = set() if stage == FINAL else cameras_of(recording).keys()
    lines = _lines(seen, stage)
    alignment = _alignment(aligned, stage)
    statuses = [status for subject, status in seen["trouble"].items() if subject.split("/")[0] not in coming]
    statuses += [alignment["status"]] if alignment else []
    reasons = [one for one in seen["reasons"] if one.split(maxsplit=1)[0].rstrip(":") not in coming]
    return {
        "schema": "card/1",
        "recording": recording.name,
        "stage": stage,
        "status": max([PASS, *statuses], key=(PASS, WARN, FAIL).index),
        "reasons": reasons,
        "session_s": seen.get("session_s"),
        "lines": lines,
        "alignment": alignment,
        "good_for": seen.get("good_for", []),
        "events": _timeline(recording),
        "repeat": _to_repeat(lines, alignment, reasons),
        "thumbnails": [
            str(path.relative_to(recording)) for path in matching(recording, f"*/{PROXIES}/*.THM")
        ],
        "made_in_s": round(time.monotonic() - begin_s, 1),
    }


def _lines(seen: dict[str, Any], stage: str) -> list[dict[str, Any]]:
    """One line a stream and camera, worst first: status, coverage, and what is wrong."""
    facts = seen["streams"] | (seen.get("cameras", {}) if stage == FINAL else {})
    lines = [
        {
            "name": name,
            "status": seen["trouble"].get(name, PASS),
            "coverage": one.get("coverage"),
            "reasons": [reason for reason in seen["reasons"] if reason.startswith((f"{name}:", f"{name} "))],
        }
        for name, one in facts.items()
    ]
    return sorted(lines, key=lambda line: (-(PASS, WARN, FAIL).index(line["status"]), line["name"]))


def _alignment(aligned: RecordingAnswer | None, stage: str) -> dict[str, Any] | None:
    """Report how well films and headset go together, by what, and where each film begins by that."""
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


def compared(first: dict[str, Any], final: dict[str, Any]) -> dict[str, Any]:
    """Return whether the final card says what the first one said, and if not, in what they differ."""
    differs = []
    if (first["status"], final["status"]) != (PASS, PASS) and first["status"] != final["status"]:
        new = [reason for reason in final["reasons"] if reason not in first["reasons"]]
        differs.append(
            f"it was {first['status']}, it is {final['status']}: {'; '.join(new) or 'less is wrong now'}"
        )
    early, late = first["alignment"], final["alignment"]
    if early is not None and late is not None:
        differs += _moved(early, late)
    return {"agrees": not differs, "differs": differs}


def _moved(early: dict[str, Any], late: dict[str, Any]) -> list[str]:
    """Report for each film how far it lies from where its small copy was put, if more than the bounds allow."""
    if early["verdict"] != late["verdict"]:
        return [
            f"the alignment was {early['verdict']} by the small copy, it is {late['verdict']} by the film"
        ]
    allowed_ms = max(AGREES_MS, (early["bound_ms"] or 0.0) + (late["bound_ms"] or 0.0))
    said = []
    for source, rows in late["samples"].items():
        before = np.array(early["samples"].get(source, []))
        if not len(before):
            said.append(f"{source} had no small copy that could be aligned")
            continue
        now = np.array(rows)
        ticks = np.interp(now[:, 0], before[:, 0], before[:, 1])
        off_ms = float(np.abs(now[:, 1] - ticks).max()) / 1e4
        if off_ms > allowed_ms:
            said.append(f"{source} lies {off_ms:.0f} ms from where its small copy was put")
    return said


def _timeline(recording: Path) -> list[dict[str, Any]]:
    """What people did, by seconds from the start of the recording; what they wrote stands in the events alone.

    Nothing where the manifest does not say when that was.
    """
    start_ns = (read_manifest(recording).get("started") or {}).get("host_ns")
    if start_ns is None:
        return []
    return [
        {"at_s": round((event["host_ns"] - start_ns) / 1e9, 1), "kind": event["kind"], "by": event["writer"]}
        for event in read_events(recording)
    ]


def _to_repeat(
    lines: list[dict[str, Any]], alignment: dict[str, Any] | None, reasons: list[str]
) -> list[str]:
    """Report what can be mended only while the participant is here."""
    said = [f"record again: {line['name']} is of no use" for line in lines if line["status"] == FAIL]
    if alignment is not None and alignment["status"] == FAIL:
        said.append(
            "let the participant turn the head quickly left and right and clap, both cameras on, then stop again"
        )
    return said or (["record again"] if any("damaged" in reason for reason in reasons) else [])


PROXIES = "proxies"
KEPT_APART = ("sync", "annotations")


def provisional_alignment(recording: Path) -> RecordingAnswer | None:
    """Align with small copies in the place of films; None where there is none.

    They hold the pictures at the same times, the same sound and the same motion as the film.
    """
    small = _small_copies(recording)
    if not small:
        return None
    work = recording.parent / WORK  # on the same disk, where a file can have a second name
    work.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="card-", dir=work) as folder:
        stand_in = Path(folder) / recording.name
        _stand_in(recording, stand_in, small)
        try:
            return synchronize(stand_in)
        except (SyncError, StorageError, SensorError, OSError) as error:
            return {"status": "not_aligned", "reasons": [str(error)]}


def _small_copies(recording: Path) -> dict[Path, str]:
    """Return the small copies by path, with the names of their films."""
    found = {}
    for media in sorted(recording.glob(f"*/{MEDIA}")):
        for entry in read_media(recording, media.parent.name).get("small") or []:
            path = media.parent / PROXIES / (proxy_name(str(entry)) or "")
            if path.is_file():
                found[path] = str(entry)
    return found


def _stand_in(recording: Path, folder: Path, small: dict[Path, str]) -> None:
    """Make a folder that is the recording, but for its films."""
    folder.mkdir()
    cameras = {path.parent.parent for path in small}
    for path in recording.iterdir():
        if path.is_dir() and path.name not in KEPT_APART and path not in cameras:
            shutil.copytree(path, folder / path.name, copy_function=_name_again)
    shutil.copyfile(recording / MANIFEST, folder / MANIFEST)
    for camera in cameras:
        (folder / camera.name).mkdir()
        shutil.copyfile(camera / MEDIA, folder / camera.name / MEDIA)
    for path, film in small.items():
        _name_again(path, folder / path.parent.parent.name / film)


def _name_again(path: str | Path, target: str | Path) -> None:
    """Give a file a second name; where the disk has no such names it is copied."""
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)
