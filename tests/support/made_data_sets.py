"""Data sets made by lot, in memory and on the disk, for the tests of releases."""

from __future__ import annotations

import random
from pathlib import Path

from recipe_app.graphs.formats.annotation_files import format_annotations
from recipe_app.graphs.formats.annotations import AnnotatedRecording, Annotations, Entry, TaggedError

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
