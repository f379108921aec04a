"""The account of a scenario: what the virtual kitchen sent, what was stored, and whether each loss has a name.

A lost packet is explained only when its true stamp lies inside a gap of the ledger whose cause fits the fault.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py

from capture.rehearsal.scenarios import KINDS
from storage.recording import open_recording
from storage.verify import verify

SLACK_NS = 2_000_000_000
"""A gap may be longer than its fault by this and two packet periods: starting again takes time."""


@dataclass
class Account:
    """One row of the table."""

    name: str
    produced: int = 0
    stored: int = 0
    named_losses: int = 0
    unexplained: int = 0
    duplicates: int = 0
    unreadable_files: int = 0
    notes: str = ""

    def row(self) -> dict[str, Any]:
        """Return the row as the contract has it."""
        return {
            "name": self.name,
            "produced": self.produced,
            "stored": self.stored,
            "named_losses": self.named_losses,
            "unexplained": self.unexplained,
            "duplicates": self.duplicates,
            "notes": self.notes,
        }


def settle(folder: Path) -> Account:
    """Account for the scenario that was played in `folder`."""
    scenario = json.loads((folder / "scenario.json").read_text())
    causes = KINDS[scenario["kind"]].causes
    recording = folder / "data" / scenario["recording"]
    account = Account(folder.name)
    checked = verify(recording)
    account.unreadable_files = sum(not _opens(path) for path in recording.rglob("*.h5"))
    with open_recording(recording) as opened:
        for path in sorted((folder / "sim" / "truth").glob("*/*.jsonl")):
            name = f"{path.parent.name}/{path.stem}"
            if name in checked["streams"]:
                sent = [json.loads(line) for line in path.read_text().splitlines()]
                _settle_stream(account, opened[name].index, sent, checked["streams"][name], causes)
    for reason in checked["reasons"]:
        if checked["status"] == "FAIL":
            account.unexplained += 1
            account.notes = f"{account.notes}; {reason}".strip("; ")
    if scenario["kind"] == "nothing" and any(facts["gaps"] for facts in checked["streams"].values()):
        account.unexplained += 1
        account.notes = f"{account.notes}; gaps without a fault".strip("; ")
    return account


def _settle_stream(
    account: Account, index: Any, sent: list[dict[str, Any]], facts: dict[str, Any], causes: tuple[str, ...]
) -> None:
    stored = Counter(index["device_ticks"].tolist())
    produced = Counter(int(packet["ticks"]) for packet in sent)
    account.produced += produced.total()
    account.stored += stored.total()
    account.duplicates += (stored - produced).total() + facts["duplicates"]
    for ticks, count in (produced - stored).items():
        if any(_explains(gap, ticks, causes) for gap in facts["gaps"]):
            account.named_losses += count
        else:
            account.unexplained += count
            account.notes = account.notes or f"tick {ticks} is lost and no gap explains it"


def _explains(gap: dict[str, Any], ticks: int, causes: tuple[str, ...]) -> bool:
    return gap["cause"] in causes and gap["start_ticks"] < ticks < gap["end_ticks"]


def _opens(path: Path) -> bool:
    """Tell whether stock h5py opens a file, and a chunk's index holds what it promises."""
    try:
        with h5py.File(path) as file:
            return "index" not in file or len(file["index"]) == int(file.attrs["count"])
    except (OSError, KeyError, RuntimeError):
        return False
