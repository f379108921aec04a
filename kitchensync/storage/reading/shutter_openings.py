"""The clips of a camera: what each opening of its shutter made, one more after each change of battery or card."""

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
"""A camera's clock may be wrong by whole steps of a time zone."""
CLOCK_AGREES_S = 30.0


@dataclass(frozen=True)
class ClipOpening:
    """The chapters of one clip, in order."""

    files: tuple[Path, ...]
    opened: ShutterForm | None
    "The opening of the shutter; None where nobody noted it."

    @property
    def opened_host_ns(self) -> int | None:
        """When the camera was seen to film, else when its answer came."""
        return shutter_host_ns(self.opened) if self.opened else None


def shutter_host_ns(event: ShutterForm) -> int:
    """Return when the camera was seen to obey (host ns), else when its answer came."""
    return int(event.get("observed_host_ns") or event["after_host_ns"])


def read_media(recording: Path, camera: str) -> MediaForm:
    """Return what media.json of a camera holds; nothing where it cannot be read, which `verify` names."""
    try:
        return load_media(recording / camera / MEDIA)
    except (OSError, BadJson):
        return {}


def clip_openings(media: MediaForm, files: Iterable[Path]) -> list[ClipOpening]:
    """Group the files of one camera by clip and say when the shutter opened for each.

    Where it opened several times the camera's own clock tells the clips apart; without it they count in order, but
    only where none is missing.
    """

    def clip_of(path: Path) -> str:
        known = card_name(path.name)
        return "".join(known.clip) if known is not None else path.name

    groups = [tuple(chapters) for _, chapters in groupby(in_order(files), key=clip_of)]
    openings = [one for one in (media.get("shutter_on"), *media.get("shutters_on_again", [])) if one]
    chosen = _by_clock(media, groups, openings) if len(openings) > 1 else None
    if chosen is None:
        whole = openings if len(groups) >= len(openings) else []
        chosen = [whole[k] if k < len(whole) else None for k in range(len(groups))]
    return [ClipOpening(group, opened) for group, opened in zip(groups, chosen, strict=True)]


def in_order(files: Iterable[Path]) -> list[Path]:
    """Sort a camera's files by number, then chapter."""

    def place(path: Path) -> tuple[str, str, str, int, str]:
        known = card_name(path.name)
        if known is None:
            return "", "", "", 0, path.name
        return known.number, known.prefix, known.letters, known.chapter, path.name

    return sorted(files, key=place)


def _by_clock(
    media: MediaForm, groups: list[tuple[Path, ...]], openings: list[ShutterForm]
) -> list[ShutterForm | None] | None:
    """Give each clip the opening that its camera's clock tells; None where it does not tell for all of them."""
    created = {entry["file"]: entry.get("created_s") for entry in media.get("files", [])}
    begun = [at_s for group in groups if (at_s := created.get(group[0].name)) is not None]
    if "anchor" not in media or len(begun) < len(groups):
        return None
    offset_ns = ((media.get("clock") or {}).get("start") or {}).get("offset_ns", 0)
    zero_ns = media["anchor"]["utc_ns"] - media["anchor"]["host_ns"] + offset_ns
    found = []
    for begun_s in begun:
        away_s = [begun_s - (shutter_host_ns(opened) + zero_ns) / 1e9 for opened in openings]
        away = [abs((one + CLOCK_STEP_S / 2) % CLOCK_STEP_S - CLOCK_STEP_S / 2) for one in away_s]
        best = min(range(len(openings)), key=away.__getitem__)
        found.append(best if away[best] <= CLOCK_AGREES_S else None)
    known = [best for best in found if best is not None]
    if len(set(known)) != len(known):
        return None
    return [None if best is None else openings[best] for best in found]
