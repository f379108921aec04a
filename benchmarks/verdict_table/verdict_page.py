"""The table of played faults in `docs/reference/faults-and-verdicts.md`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PLAYED = """
## Every fault of the virtual kitchen

Each fault of `kitchensync simulate --faults` was played twice, weak (1) and strong (2), in recordings of 15 seconds
by the real `record`; `make verdicts` plays them again and writes this table. Those named `hostile_` are not in it:
they send what no headset does, no truth holds a verdict against them, and `kitchensync rehearse` plays them beside a
recording. *Coverage* is the lowest of all streams and cameras: as `verify` said it, and as counted from the packets
that the kitchen wrote down when it sent them. No card is green below 0.95. The last column has the first reason.

| fault | played | verdict | card | coverage said | coverage true | first reason |
|---|---|---|---|---|---|---|
"""
COLOURS = {"good": "green", "warn": "yellow", "bad": "red", "": "none"}
MOST_LETTERS = 90


def page(
    before: str, rows: list[dict[str, Any]], worst_share: Callable[[dict[str, Any]], tuple[float, float]]
) -> str:
    """Return the page with a new table of faults; what stands above it stays."""
    return before.partition(PLAYED)[0] + PLAYED + "".join(_line(row, worst_share(row)) for row in rows)


def _line(row: dict[str, Any], shares: tuple[float, float]) -> str:
    name, _, number = row["name"].rpartition("_")
    played = ", ".join(f"`{fault}`" for fault in row["faults"]) or "nothing"
    if not row.get("streams"):
        return f"| {name} ({number}) | {played} | {row['status']} | none | | | {_short(row['reasons'])} |\n"
    said = _short([*row["reasons"], *(f"note: {note}" for note in row["notes"])])
    verdict, card = row["status"], COLOURS.get(row["card"], row["card"])
    return f"| {name} ({number}) | {played} | {verdict} | {card} | {shares[0]:.2f} | {shares[1]:.2f} | {said} |\n"


def _short(parts: list[str]) -> str:
    """Return the first reason, with an ellipsis where it is cut or is not the only one."""
    first = next(iter(parts), "").replace("|", "/").replace("hololens/", "").replace("\n", " ")
    if len(first) > MOST_LETTERS:
        return first[:MOST_LETTERS].rpartition(" ")[0] + " ..."
    return first + " ..." * (len(parts) > 1)
