"""Lists of recordings by part, as `release split` and the published set write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from recipe_app.graphs.formats.strict_json import Reader, load

SPLIT_FILE = re.compile(r"([a-z]+)_data_split_(combined|normal)\.json")
PARTS = ("train", "val", "test")

Split = dict[str, list[str]]


def parse_split(text: str, name: str, known: Iterable[str]) -> Split | None:
    """Read a file of parts; None where it divides steps, not recordings.

    Raises BadGraph, also for a recording that is not `known` or stands in it twice.
    """
    read, known, seen = Reader(name), frozenset(known), set[str]()
    found = read.object(load(text, name), "")
    read.known_keys(found, set(PARTS), "")
    if any(isinstance(ids, Mapping) for ids in found.values()):
        return None
    split = {part: [read.text(one, part) for one in read.array(found.get(part, []), part)] for part in PARTS}
    for part, ids in split.items():
        for one in ids:
            if one not in known:
                raise read.fail(part, f"{one} is not in the data set; take both from one release")
            if one in seen:
                raise read.fail(part, f"{one} stands in it twice")
            seen.add(one)
    return split
