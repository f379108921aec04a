"""A module name has one meaning: where it stands in several folders, they speak of the same thing."""

from __future__ import annotations

from collections import defaultdict

from root_folders import FOLDERS, ROOT

MEANS = {
    "adopt": "make a recording of videos that were filmed elsewhere",
    "alignment": "what `sync` found of one film",
    "camera": "a GoPro",
    "consent": "what a participant agreed to",
    "errors": "the errors of a root folder",
    "events": "what people did while a recording was made",
    "film": "a camera's clip as pictures",
    "memory_card": "a camera's memory card",
}
FREE = {"__init__", "__main__"}


def test_no_module_name_stands_for_two_things() -> None:
    places = defaultdict(list)
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            if "migrations" not in path.parts and path.stem not in FREE:
                places[path.stem].append(str(path.relative_to(ROOT)))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    strange = {name: found for name, found in twice.items() if name not in MEANS}
    assert not strange, "rename one, or say here what all of them mean"
    assert MEANS.keys() <= twice.keys(), "these stand for one module by now"
