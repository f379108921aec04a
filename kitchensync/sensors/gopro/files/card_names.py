"""File names on a GoPro's card: which recording a file belongs to, which chapter it is, and what goes with it.

GX010001.MP4 is chapter 1 of recording 0001, GX020001.MP4 its chapter 2, GX010002.MP4 the next recording: so order is
by number and chapter, never by name. HERO5 and older write GOPR0001, then GP010001, GP020001; looping uses letters.
GoPro Labs puts a name or a time of the user's own before all that: CAM2GX010117.MP4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kitchensync.sensors.errors import UnsafeName
from kitchensync.shell.files_on_disk import is_left_by_system

FOLDER = re.compile(r"[A-Za-z0-9_]{1,32}")
NAME = re.compile(r"[A-Za-z0-9_](?!.*\.\.)[A-Za-z0-9_.-]{0,63}\.[A-Za-z0-9]{1,5}")
_MODERN = re.compile(r"(?P<prefix>.*?)(?P<letters>G[A-Z])(?P<chapter>\d{2}|[A-Z]{2})(?P<number>\d{4})")
_OLD_FIRST = re.compile(r"(?P<prefix>.*?)GOPR(?P<number>\d{4})")


@dataclass(frozen=True, order=True)
class CardName:
    """One video's place: recordings in order of `number`, their files in order of `chapter`."""

    number: str
    "Four digits that the chapters of one recording share."
    letters: str
    "GX (H.265), GH (H.264), GP (HERO5 and older), GS (360 degrees), GL (small copy)."
    chapter: int
    "From 1."
    name: str
    prefix: str = ""
    "What GoPro Labs wrote before, in capital letters."

    @property
    def clip(self) -> tuple[str, str, str]:
        """What the chapters of one clip share."""
        return self.prefix, self.number, self.letters


def card_name(name: str) -> CardName | None:
    """Read a camera's file name, None when it is not one."""
    stem = name.rpartition(".")[0].upper()
    if is_left_by_system(name):
        return None
    if match := _OLD_FIRST.fullmatch(stem):
        return CardName(match["number"], "GP", 1, name, match["prefix"])
    if not (match := _MODERN.fullmatch(stem)):
        return None
    chapter, letters = match["chapter"], match["letters"]
    if chapter.isdigit():
        place = int(chapter) + (letters == "GP")
    else:
        first, second = (ord(letter) - ord("A") for letter in chapter)
        place = 26 * first + second + 1
    return CardName(match["number"], letters, place, name, match["prefix"])


def check_safe(folder: str, name: str) -> None:
    """Refuse names from a device that could lead out of a folder; raise `UnsafeName`."""
    for pattern, text in ((FOLDER, folder), (NAME, name)):
        if not pattern.fullmatch(text):
            raise UnsafeName(text)


def proxy_name(name: str) -> str | None:
    """Name of a video's small copy: GX010001.MP4 -> GL010001.LRV; None when it is no camera's name."""
    known = card_name(name)
    if known is None:
        return None
    stem = name.rpartition(".")[0]
    return (stem if known.letters == "GP" else f"{stem[:-8]}GL{stem[-6:]}") + ".LRV"


def thumbnail_name(name: str) -> str:
    """Name of a video's small picture: GX010001.MP4 -> GX010001.THM."""
    return name.rpartition(".")[0] + ".THM"


@dataclass(frozen=True)
class ClipFiles:
    """The chapters of one recording in one folder, in order."""

    folder: Path
    letters: str
    number: str
    paths: tuple[Path, ...]
    missing: tuple[int, ...]
    "Chapters that should be there and are not; the last one may be missing unseen."


def group_clips(paths: Iterable[Path]) -> list[ClipFiles]:
    """Group videos by folder and recording, each group in order of chapter; files of other names are left out."""
    groups: dict[tuple[Path, tuple[str, str, str]], list[tuple[int, Path]]] = {}
    for path in paths:
        known = card_name(path.name)
        if known is not None and path.suffix.upper() == ".MP4":
            groups.setdefault((path.parent, known.clip), []).append((known.chapter, path))
    clips = []
    for (folder, (_, number, letters)), found in sorted(groups.items()):
        found.sort()
        here = {chapter for chapter, _ in found}
        missing = tuple(chapter for chapter in range(1, max(here) + 1) if chapter not in here)
        clips.append(ClipFiles(folder, letters, number, tuple(path for _, path in found), missing))
    return clips


def siblings(path: Path) -> ClipFiles | None:
    """Find all chapters of the recording that a file belongs to, in its own folder."""
    known = card_name(path.name)
    if known is None:
        return None
    clips = group_clips(file for file in path.parent.iterdir() if file.is_file())
    return next((clip for clip in clips if any(other.name == path.name for other in clip.paths)), None)
