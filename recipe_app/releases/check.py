"""Read a data set again as a stranger would, and say what is not as it must be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from recipe_app.errors import RecipeError
from recipe_app.graphs.formats.annotation_files import format_annotations
from recipe_app.graphs.formats.annotations import Annotations, parse_annotations
from recipe_app.graphs.formats.captaincook4d import parse_captaincook4d
from recipe_app.graphs.formats.graph_files import read_text
from recipe_app.releases.sums import LINE, SUMS
from sensors.files_on_disk import file_sha256

TEXTS = ("annotation_json", "annotation_csv", "data_splits", "metadata", "task_graphs")
CARDS = ("README.md", "croissant.json", "index.html", "download.py", "previews")
LICENCES = re.compile(r"LICENSE[A-Za-z0-9._-]*")
TOP = (*TEXTS, *CARDS, "captain_cook_4d", "kitchensync.jsonl", SUMS)
PUBLISHED_ID = re.compile(r"[1-9][0-9]*_[1-9][0-9]*")
FILM = "captain_cook_4d/gopro/resolution_360p/{}_360p.mp4"
_MOST_BYTES = 64 << 20


@dataclass
class ReleaseFaults:
    """What differs (`file`, `where`, `want`, `got`), and words found that must not leave."""

    differences: list[dict[str, Any]] = field(default_factory=list)
    names: list[dict[str, str]] = field(default_factory=list)

    def differs(self, file: str, where: str, want: object, got: object) -> None:
        """Note one difference."""
        self.differences.append({"file": file, "where": where, "want": want, "got": got})


def check(folder: Path, *, words: frozenset[str] = frozenset()) -> ReleaseFaults:
    """Check layout, checksums, ids, times and films of a data set; `words` must stand in none of its files."""
    found = ReleaseFaults()
    _sums(folder, found)
    texts = {
        path.relative_to(folder).as_posix(): read_text(path, most_bytes=_MOST_BYTES)
        for name in TEXTS
        for path in sorted((folder / name).glob("*"))
    }
    try:
        annotations = parse_annotations(texts)
    except (RecipeError, KeyError) as error:
        found.differs("annotation_json", "", "the published form", str(error))
    else:
        _forms(annotations, texts, found)
        _graphs(annotations, texts, found)
        _films(folder, annotations, found)
    _words(folder, words, found)
    return found


def _sums(folder: Path, found: ReleaseFaults) -> None:
    path = folder / SUMS
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    named = set()
    for number, line in enumerate(lines, start=1):
        match = LINE.fullmatch(line)
        if match is None:
            found.differs(SUMS, f"line {number}", "<sha256>  <file>", line[:80])
            continue
        named.add(match[2])
        file = folder / match[2]
        got = file_sha256(file) if file.is_file() else "no file"
        if got != match[1]:
            found.differs(match[2], "", match[1], got)
    there = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} - {SUMS}
    for name in sorted(there - named):
        found.differs(SUMS, name, "a line for every file", "none")
    tops = {name: name.partition("/")[0] for name in there}
    for name in sorted(name for name, top in tops.items() if top not in TOP and not LICENCES.fullmatch(top)):
        found.differs(name, "", "a file of the published form", "another file")


def _forms(annotations: Annotations, texts: dict[str, str], found: ReleaseFaults) -> None:
    for name, text in format_annotations(annotations).items():
        if name not in texts:
            found.differs(name, "", "the file", "no file")
        elif texts[name] != text:
            found.differs(name, "", "the form of the other files", "other content")
    for recording in annotations.recordings:
        if not PUBLISHED_ID.fullmatch(recording.recording_id):
            found.differs("annotation_json", recording.recording_id, "<activity>_<number>", "another id")


def _graphs(annotations: Annotations, texts: dict[str, str], found: ReleaseFaults) -> None:
    for stem in sorted({recording.graph_stem for recording in annotations.recordings}):
        name = f"task_graphs/{stem}.json"
        if name not in texts:
            found.differs(name, "", "the graph of a recipe", "no file")
            continue
        labels = {step.label for step in parse_captaincook4d(texts[name], name=name).nodes}
        for one in annotations.recordings:
            if one.graph_stem == stem:
                for place, entry in enumerate(one.entries):
                    if entry.description not in labels:
                        found.differs(name, f"{one.recording_id}[{place}]", entry.description, "no such step")


def _films(folder: Path, annotations: Annotations, found: ReleaseFaults) -> None:
    lengths = {row[0]: row[-1] for row in annotations.videos[1:]}
    for one in annotations.recordings:
        name = FILM.format(one.recording_id)
        stated = float(lengths.get(one.recording_id, "nan"))
        if (folder / name).is_file():
            frames, film_s = _counted(folder / name)
            if abs(film_s - stated) > 0.05:
                found.differs(name, f"{frames} pictures", f"{stated} s", f"{film_s:.2f} s")
        for place, entry in enumerate(one.entries):
            if entry.performed and not 0 <= entry.start_s <= entry.end_s <= stated + 0.05:
                got = f"{entry.start_s} to {entry.end_s}"
                found.differs("annotation_json", f"{one.recording_id}[{place}]", f"within {stated} s", got)


def _counted(path: Path) -> tuple[int, float]:
    """Decode a film; return how many pictures it has and how long it is."""
    import av

    with av.open(str(path)) as film:
        count = sum(1 for _ in film.decode(video=0))
        rate = Fraction(film.streams.video[0].average_rate or 1)
    return count, float(count / rate)


def _words(folder: Path, words: frozenset[str], found: ReleaseFaults) -> None:
    wanted = [(word, word.encode()) for word in sorted(words) if word]
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        for block in _blocks(path, max((len(b) for _, b in wanted), default=1)):
            for word, sought in wanted:
                if sought in block:
                    found.names.append({"file": path.relative_to(folder).as_posix(), "found": word})


def _blocks(path: Path, overlap: int) -> Iterator[bytes]:
    kept = b""
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            yield kept + block
            kept = block[-overlap:]
