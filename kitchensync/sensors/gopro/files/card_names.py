"""File names on a GoPro's card: the recording and chapter of a file, and its companion files.

GX010001.MP4 is chapter 1 of recording 0001, GX020001.MP4 its chapter 2, GX010002.MP4 the next recording. So files are
ordered by number and chapter, never by name. HERO5 and older write GOPR0001, then GP010001, GP020001; looping uses
letters. GoPro Labs adds a prefix that the user chooses: CAM2GX010117.MP4.
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
    """The parts of a video's name, which sort by `number`, then by `chapter`."""

    number: str
    "Four digits that the chapters of one recording share."
    letters: str
    "GX (H.265), GH (H.264), GP (HERO5 and older), GS (360 degrees), GL (small copy)."
    chapter: int
    "From 1."
    name: str
    prefix: str = ""
    "Prefix of GoPro Labs, in capital letters."

    @property
    def clip(self) -> tuple[str, str, str]:
        """The parts that the chapters of one clip share."""
        return self.prefix, self.number, self.letters


def card_name(name: str) -> CardName | None:
    """Parse a camera's file name; None if it is not one."""
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
    """Check names from a device, which could lead out of a folder. Raises `UnsafeName`."""
    for pattern, text in ((FOLDER, folder), (NAME, name)):
        if not pattern.fullmatch(text):
            raise UnsafeName(text)


def proxy_name(name: str) -> str | None:
    """Return the name of a video's low-resolution copy: GX010001.MP4 -> GL010001.LRV; None for other names."""
    parsed = card_name(name)
    if parsed is None:
        return None
    stem = name.rpartition(".")[0]
    return (stem if parsed.letters == "GP" else f"{stem[:-8]}GL{stem[-6:]}") + ".LRV"


def thumbnail_name(name: str) -> str:
    """Return the name of a video's thumbnail: GX010001.MP4 -> GX010001.THM."""
    return name.rpartition(".")[0] + ".THM"


@dataclass(frozen=True)
class ClipFiles:
    """The chapters of one recording in one folder, in order."""

    folder: Path
    letters: str
    number: str
    paths: tuple[Path, ...]
    missing: tuple[int, ...]
    "Missing chapters; a missing last chapter cannot be detected."


def group_clips(paths: Iterable[Path]) -> list[ClipFiles]:
    """Group videos by folder and recording, each group in order of chapter; files with other names are skipped."""
    groups: dict[tuple[Path, tuple[str, str, str]], list[tuple[int, Path]]] = {}
    for path in paths:
        name = card_name(path.name)
        if name is not None and path.suffix.upper() == ".MP4":
            groups.setdefault((path.parent, name.clip), []).append((name.chapter, path))
    clips = []
    for (folder, (_, number, letters)), chapters in sorted(groups.items()):
        chapters.sort()
        present = {chapter for chapter, _ in chapters}
        missing = tuple(chapter for chapter in range(1, max(present) + 1) if chapter not in present)
        clips.append(ClipFiles(folder, letters, number, tuple(path for _, path in chapters), missing))
    return clips


def siblings(path: Path) -> ClipFiles | None:
    """Return all chapters of a file's recording in the same folder; None if its name is not a camera's."""
    if card_name(path.name) is None:
        return None
    clips = group_clips(file for file in path.parent.iterdir() if file.is_file())
    return next((clip for clip in clips if any(other.name == path.name for other in clip.paths)), None)
