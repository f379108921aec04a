"""A module name has one meaning: where it stands in several folders, they speak of the same thing."""

from __future__ import annotations

from collections import defaultdict

from root_folders import PACKAGE, product_files

MEANS = {
    "adopt": "make a recording of videos that were filmed elsewhere",
    "alignment": "what `sync` found of one film",
    "camera": "a GoPro",
    "consent": "what a participant agreed to",
    "errors": "the errors of a folder of the package",
    "events": "what people did while a recording was made",
    "film": "a camera's clip as pictures",
    "memory_card": "a camera's memory card",
}
FREE = {"__init__", "__main__"}


def test_no_module_name_stands_for_two_things() -> None:
    places = defaultdict(list)
    for path in product_files():
        if "migrations" not in path.parts and path.stem not in FREE:
            places[path.stem].append(str(path.relative_to(PACKAGE)))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    strange = {name: found for name, found in twice.items() if name not in MEANS}
    assert not strange, "rename one, or say here what all of them mean"
    assert MEANS.keys() <= twice.keys(), "these stand for one module by now"
