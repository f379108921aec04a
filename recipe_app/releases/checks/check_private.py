"""Words that must not leave: searched in the bytes and the name of every file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from recipe_app.releases.cards import readme, responsible_use
from recipe_app.releases.checks.release_faults import ReleaseFaults

_BLOCK = 1 << 22


def check_private(folder: Path, words: frozenset[str], found: ReleaseFaults) -> None:
    """Search for words as they are and as JSON writes them; those that every data set says tell nothing."""
    wanted = {word: {word.encode(), json.dumps(word)[1:-1].encode()} for word in words - _of_all_cards(words)}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        there = {word for word, forms in wanted.items() if any(form in name.encode() for form in forms)}
        for block in _blocks(
            path, max((len(form) for forms in wanted.values() for form in forms), default=1)
        ):
            there |= {word for word in wanted.keys() - there if any(form in block for form in wanted[word])}
        found.names += [{"file": name, "found": word} for word in sorted(there)]


def _of_all_cards(words: frozenset[str]) -> frozenset[str]:
    said = json.dumps([readme.PLACES, responsible_use.texts(is_own=True, is_virtual=False)])
    return frozenset(word for word in words if word in said)


def _blocks(path: Path, overlap: int) -> Iterator[bytes]:
    kept = b""
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield kept + block
            kept = block[-overlap:]
