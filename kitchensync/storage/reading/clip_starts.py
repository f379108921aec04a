"""The clips of a camera and when each was started; a change of battery or card starts another clip."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from kitchensync.sensors.gopro.files.card_names import card_name
from kitchensync.shell.untrusted_json import BadJson
from kitchensync.storage.names import MEDIA
from kitchensync.storage.recording_files.media_file import load_media

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import MediaForm, ShutterForm

CLOCK_STEP_S = 900.0
"""Step of time zones; a camera's clock may be wrong by multiples of it."""
CLOCK_AGREES_S = 30.0  # creation times were reported up to some 30 s off the start (OpenGoPro issue 269)


@dataclass(frozen=True)
class ClipStart:
    """The chapters of one clip, in order."""

    files: tuple[Path, ...]
    started: ShutterForm | None
    "The command that started it; None if it is unknown."

    @property
    def started_host_ns(self) -> int | None:
        """When filming was observed, else when the camera's answer came."""
        return shutter_host_ns(self.started) if self.started else None


def shutter_host_ns(event: ShutterForm) -> int:
    """Return when the effect was observed (host ns), else when the camera's answer came."""
    return int(event.get("observed_host_ns") or event["after_host_ns"])


def read_media(recording: Path, camera: str) -> MediaForm:
    """Return the content of a camera's media.json; empty if it cannot be read, which `verify` reports."""
    try:
        return load_media(recording / camera / MEDIA)
    except (OSError, BadJson):
        return {}


def clip_starts(media: MediaForm, files: Iterable[Path]) -> list[ClipStart]:
    """Group the files of one camera by clip, with the start of each.

    Several starts are assigned by the camera's own clock; without it in order, but only if no clip is missing.
    """

    def clip_of(path: Path) -> str:
        name = card_name(path.name)
        return "".join(name.clip) if name is not None else path.name

    groups = [tuple(chapters) for _, chapters in groupby(in_order(files), key=clip_of)]
    starts = [start for start in (media.get("shutter_on"), *media.get("shutters_on_again", [])) if start]
    chosen = _by_clock(media, groups, starts) if len(starts) > 1 else None
    if chosen is None:
        usable = starts if len(groups) >= len(starts) else []
        chosen = [usable[k] if k < len(usable) else None for k in range(len(groups))]
    return [ClipStart(group, started) for group, started in zip(groups, chosen, strict=True)]


def in_order(files: Iterable[Path]) -> list[Path]:
    """Sort a camera's files by number, then chapter."""

    def place(path: Path) -> tuple[str, str, str, int, str]:
        name = card_name(path.name)
        if name is None:
            return "", "", "", 0, path.name
        return name.number, name.prefix, name.letters, name.chapter, path.name

    return sorted(files, key=place)


def _by_clock(
    media: MediaForm, groups: list[tuple[Path, ...]], starts: list[ShutterForm]
) -> list[ShutterForm | None] | None:
    """Assign starts to clips by the camera's clock; None if it is not known for all clips."""
    created = {entry["file"]: entry.get("created_s") for entry in media.get("files", [])}
    created_s = [at_s for group in groups if (at_s := created.get(group[0].name)) is not None]
    if "anchor" not in media or len(created_s) < len(groups):
        return None
    offset_ns = ((media.get("clock") or {}).get("start") or {}).get("offset_ns", 0)
    zero_ns = media["anchor"]["utc_ns"] - media["anchor"]["host_ns"] + offset_ns
    matches = []
    for begun_s in created_s:
        differences_s = [begun_s - (shutter_host_ns(start) + zero_ns) / 1e9 for start in starts]
        distances_s = [
            abs((distance_s + CLOCK_STEP_S / 2) % CLOCK_STEP_S - CLOCK_STEP_S / 2)
            for distance_s in differences_s
        ]
        best = min(range(len(starts)), key=distances_s.__getitem__)
        matches.append(best if distances_s[best] <= CLOCK_AGREES_S else None)
    used = [best for best in matches if best is not None]
    if len(set(used)) != len(used):
        return None
    return [None if best is None else starts[best] for best in matches]
