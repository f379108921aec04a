"""Every two people who marked the same film, compared."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

from recipe_app.annotation.forms.agreement_of_people import Spans, agreement
from recipe_app.annotation.read_file import read_file
from recipe_app.errors import RecipeError


class NothingToCompare(RecipeError):
    """No film that two people marked."""

    def __init__(self, files: Sequence[Path]) -> None:
        names = ", ".join(path.name for path in files)
        super().__init__(f"{names}: no film was marked by two people; give the exports of both")


def pairs_of(files: Sequence[Path], config: Path | None, fps: Fraction | None) -> list[dict[str, Any]]:
    """Return the agreement of every two people by recording. Raises BadGraph, NothingToCompare.

    A person is named by file and number where there are several files.
    """
    found: dict[str, list[tuple[str, Spans, float | None]]] = {}
    for path in files:
        for recording, said in read_file(path, config, fps)["recordings"].items():
            for person, spans in said["annotators"].items():
                name = person if len(files) == 1 else f"{path.name}:{person}"
                found.setdefault(recording, []).append((name, spans, said["duration_s"]))
    pairs = [
        {"recording": recording, "first": one[0], "second": other[0], **agreement(one[1], other[1], one[2])}
        for recording, people in found.items()
        for one, other in combinations(people, 2)
    ]
    if not pairs:
        raise NothingToCompare(files)
    return pairs
