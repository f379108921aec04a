"""Some of the questions about assembled toys, drawn by a seed, and the end of their films moved by one."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable

from kitchensync.dataset.promqa.assembly_steps import AssemblyRow

KINDS = ("next", "missing", "order", "past", "misadjustment", "general", "location", "current_general")
MOST_OF_SEQUENCE, MOST_OF_KIND = 2, 100


def sample(rows: Iterable[AssemblyRow], seed: int, most: int = MOST_OF_KIND) -> list[AssemblyRow]:
    """Draw a row with its `kind` for each question: at most two of a kind and sequence, `most` of a kind.

    A mistake made in the last step itself comes first. A kind that a remark answers is asked where the remark stands.
    """
    chance = random.Random(seed)
    rows = list(rows)
    found: list[AssemblyRow] = []
    for kind in KINDS:
        by_sequence: dict[str, list[AssemblyRow]] = defaultdict(list)
        for row in rows:
            if row["candidates"][kind] is not False:
                by_sequence[row["sequence"]].append(row)
        drawn = []
        for ours in by_sequence.values():
            chance.shuffle(ours)
            drawn += sorted(ours, key=lambda row: row["label"] != "mistake")[:MOST_OF_SEQUENCE]
        chance.shuffle(drawn)
        kept = sorted(drawn[:most], key=lambda row: (row["sequence"], row["end"]))
        found += [{**row, "kind": kind} for row in kept]
    return found


def shifted(rows: Iterable[AssemblyRow], most_s: float, seed: int) -> list[AssemblyRow]:
    """Return rows whose film ends up to `most_s` later, never within the next step; the same for one seed.

    Rows have `free_s`: how long nothing new begins after their end, None at the end of a film.
    """
    found: list[AssemblyRow] = []
    for row in rows:
        free_s = most_s if row["free_s"] is None else min(most_s, row["free_s"])
        chance = random.Random(f"{seed} {row['sequence']} {row['end']}")
        found.append({**row, "end": row["end"] + chance.uniform(0, max(0.0, free_s))})
    return found
