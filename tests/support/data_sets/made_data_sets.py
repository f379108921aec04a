"""Data sets made by lot, in memory and on the disk, for the tests of releases."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from made_videos import write_video

from kitchensync.dataset.data_set_cards.about import About
from kitchensync.dataset.data_set_cards.write_cards import write_cards
from kitchensync.dataset.release.release import own_splits
from kitchensync.dataset.source.data_set import LINKS, Cooked, numbered, text_files
from kitchensync.dataset.source.numbering import Numbering
from kitchensync.operations.entries import EntryNotes
from kitchensync.task_graphs.formats.annotation_files import format_annotations
from kitchensync.task_graphs.formats.annotations import AnnotatedRecording, Annotations, Entry, TaggedError

CATEGORIES = {"Preparation Error": 0, "Order Error": 2, "Missing Step": 6, "Other": 7}
COLUMNS = ("recording_id", "environment_id", "person_id", "duration(min)", "duration(sec)")


def recordings(seed: int, *, most: int = 60) -> list[AnnotatedRecording]:
    """Draw recordings of some recipes, persons and kitchens; in some sets somebody cooked everything."""
    chance = random.Random(seed)
    count = chance.randint(1, most)
    recipes, persons, kitchens = chance.randint(3, 9), chance.randint(1, 8), chance.randint(1, 9)
    favourite = [chance.random() ** 3 for _ in range(kitchens)]  # some kitchens are much fuller than others
    diligent = [(activity, 1) for activity in range(1, recipes + 1)] if seed % 4 else []
    drawn = [(chance.randint(1, recipes), chance.randint(1, persons)) for _ in range(count)]
    made = []
    for number, (activity, person) in enumerate(diligent + drawn, start=1):
        wrong = (TaggedError("Other", "spilt"),) * (chance.random() < 0.5)
        entries = tuple(
            Entry(step, f"Do-Do {step}", float(step), step + 0.5, wrong if step == 1 else ())
            for step in range(1, chance.randint(2, 20))
        )
        kitchen = chance.choices(range(1, kitchens + 1), favourite)[0]
        name = f"Recipe {activity}"
        made.append(AnnotatedRecording(f"{activity}_{number}", activity, name, person, kitchen, entries))
    return made


def write(folder: Path, made: list[AnnotatedRecording], *, beside: str | None = None) -> None:
    """Write recordings as a folder in the published form; `beside` makes it a lab's own data set."""
    texts = {entry.step_id: entry.description for one in made for entry in one.entries}
    videos = [(one.recording_id, str(one.environment), str(one.person_id), "1.00", "60.00") for one in made]
    files = format_annotations(Annotations(tuple(made), texts, CATEGORIES, (COLUMNS, *videos)))
    if beside is not None:
        files["kitchensync.jsonl"] = beside
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())


FILM = "captain_cook_4d/gopro/resolution_360p/{}_360p.mp4"
STEPS = {"1": {"label": "Fill-Fill a pot"}, "2": {"label": "Boil-Boil water"}}


def small_film(path: Path, *, seconds: float = 5.0, rate: int = 10) -> None:
    """Film colours, a key frame each second."""
    colours = [(number * 5 % 256, 90, 160) for number in range(round(seconds * rate))]
    write_video(path, (np.full((96, 160, 3), colour, np.uint8) for colour in colours), rate, g=str(rate))


def own_data_set(
    folder: Path,
    about: About | None = None,
    *,
    count: int = 4,
    films: bool = True,
    stated: Iterable[dict[str, Any]] = (),
) -> Path:
    """Write the data set of a lab's own recordings, as `release captaincook4d` leaves it; every second has errors."""
    numbering = Numbering()
    made = [numbered(_cooked(number, numbering), numbering) for number in range(1, count + 1)]
    links = {one.published_id: {"gopro_360p": FILM.format(one.published_id)} if films else {} for one in made}
    splits, _, _ = own_splits(folder, [one.annotated for one in made])
    texts = text_files(made, numbering, stated) | {LINKS: json.dumps(links, indent=4)} | splits
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    for kinds in links.values():
        for film in kinds.values():
            small_film(folder / film)
    members = [
        {"recording": f"take-{n}", "published_id": name, "streams": streams, "absent": [dict(ABSENT)]}
        for n, (name, streams) in enumerate(links.items())
    ]
    names = [*texts, *(film for kinds in links.values() for film in kinds.values())]
    write_cards(folder, about or About(), members, names, is_virtual=False, force=False)
    folder.with_name(f"{folder.name}.numbering.json").write_text(numbering.as_text())
    return folder


ABSENT = {"kind": "gopro_4k", "why": "not asked for"}


def _cooked(number: int, numbering: Numbering) -> Cooked:
    wrong = (TaggedError("Other", "spilt"),) * (number % 2 == 0)
    told = [
        EntryNotes(
            Entry(numbering.step(step["label"]), step["label"], float(place), place + 1.5, wrong), int(node)
        )
        for place, (node, step) in enumerate(STEPS.items())
    ]
    facts = {"strategy": "normal", "display": ("steps", "paragraph", "hidden")[number % 3], "seed": 1}
    person, edges = f"Basil {number % 3}", [[0, 1], [1, 2], [2, 3]]
    return Cooked(
        f"uuid-{number}", "tea", "Tea", person, "north", not number % 2, STEPS, edges, told, 5.0, facts
    )
