"""The page `docs/reference/faults-and-verdicts.md`: the limits of the verdict, and the table of played faults."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kitchensync.storage.verify import thresholds

HEAD = """# Faults and verdicts

`kitchensync verify` and `record` judge a recording by the limits below. A share is of the *session*: from the moment
every armed stream has delivered until the stop. A stream covers the time between two packets that are, by the
device's own stamps, no further apart than three nominal periods, or half a second where it changes its rate by itself
(near depth, plug-in sensors that say so). Notes change no verdict.

## Limits

They stand in `storage/verify/thresholds.py`, and nowhere else.

| limit | value | meaning |
|---|---|---|
"""
PLAYED = """
## Every fault of the virtual kitchen

Each fault of `kitchensync simulate --faults` was played twice, weak (1) and strong (2), in recordings of 15 seconds
by the real `record`; `make verdicts` plays them again and writes this table. Those named `hostile_` are not in it:
they send what no headset does, no truth holds a verdict against them, and `kitchensync rehearse` plays them beside a
recording. *Coverage* is the lowest of all streams and cameras: as `verify` said it, and as counted from the packets
that the kitchen wrote down when it sent them. No card is green below 0.95.

| fault | played | verdict | card | coverage said | coverage true | what was said |
|---|---|---|---|---|---|---|
"""
COLOURS = {"good": "green", "warn": "yellow", "bad": "red", "": "none"}
MOST_WORDS = 230


def page(rows: list[dict[str, Any]], worst_share: Callable[[dict[str, Any]], tuple[float, float]]) -> str:
    """Write the page."""
    limits = "".join(f"| {name} | {value} | {words} |\n" for name, value, words in limits_in_words())
    return HEAD + limits + PLAYED + "".join(_line(row, worst_share(row)) for row in rows)


def limits_in_words() -> list[tuple[str, str, str]]:
    """Return name, value and meaning of every limit, as the module has them."""
    tree = ast.parse(Path(thresholds.__file__).read_text(encoding="utf-8"))
    found = []
    for statement, after in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(statement, ast.Assign) and isinstance(after, ast.Expr):
            targets = statement.targets[0]
            names = targets.elts if isinstance(targets, ast.Tuple) else [targets]
            words = [ast.unparse(name).lower().replace("_", " ") for name in names]
            values = [f"{getattr(thresholds, ast.unparse(name)):g}" for name in names]
            found.append(
                (", ".join(words), ", ".join(values), " ".join(str(ast.literal_eval(after.value)).split()))
            )
    return found


def _line(row: dict[str, Any], shares: tuple[float, float]) -> str:
    name, _, number = row["name"].rpartition("_")
    played = ", ".join(f"`{fault}`" for fault in row["faults"]) or "nothing"
    if not row.get("streams"):
        return f"| {name} ({number}) | {played} | {row['status']} | none | | | {_short(row['reasons'])} |\n"
    said = _short([*row["reasons"], *(f"note: {note}" for note in row["notes"])])
    verdict, card = row["status"], COLOURS.get(row["card"], row["card"])
    return f"| {name} ({number}) | {played} | {verdict} | {card} | {shares[0]:.2f} | {shares[1]:.2f} | {said} |\n"


def _short(parts: list[str]) -> str:
    text = "; ".join(parts).replace("|", "/").replace("hololens/", "").replace("\n", " ")
    return text if len(text) <= MOST_WORDS else text[:MOST_WORDS] + " ..."
