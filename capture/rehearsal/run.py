"""A rehearsal: scenarios one after the other, each played, accounted for, and remembered."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from capture.errors import CaptureError
from capture.rehearsal.account import Account, settle
from capture.rehearsal.processes import RehearsalFailed
from capture.rehearsal.scenarios import Scenario
from capture.rehearsal.stage import play
from storage.errors import StorageError

ROW = "row.json"


class OtherRehearsal(CaptureError):
    """The folder holds scenarios that were drawn otherwise."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder} holds a rehearsal of another seed: give --keep another folder")


@dataclass(frozen=True)
class Kept:
    """The folder in which scenarios are played; one that was accounted for is not played again."""

    folder: Path

    def account(self, scenario: Scenario) -> Account | None:
        """Return the account of a scenario that was played here, None if it was not. Raises OtherRehearsal."""
        place = self.folder / scenario.name
        others = [path for path in self.folder.glob(f"{scenario.number:03d}-*") if path != place]
        if others or not (place / ROW).exists():
            if others:
                raise OtherRehearsal(self.folder)
            return None
        played = json.loads((place / "scenario.json").read_text())
        if any(played.get(key) != value for key, value in scenario.facts.items()):
            raise OtherRehearsal(self.folder)
        return Account(**json.loads((place / ROW).read_text()))

    def play(self, scenario: Scenario) -> Account:
        """Play a scenario and account for it; what an interrupted try left is removed first."""
        place = self.folder / scenario.name
        shutil.rmtree(place, ignore_errors=True)
        start_s = time.monotonic()
        try:
            play(scenario, place)
            account = settle(place)
        except (RehearsalFailed, StorageError, OSError, subprocess.TimeoutExpired) as error:
            return Account(
                scenario.name, unexplained=1, notes=str(error)
            )  # not remembered: to be played again
        account.seconds = round(time.monotonic() - start_s, 1)
        (place / ROW).write_text(json.dumps(account.row(), indent=1))
        return account


def run(
    scenarios: Iterable[Scenario], kept: Kept, begin: Callable[[str], None] = lambda _: None
) -> Iterator[Account]:
    """Play what was not played yet; yield the account of every scenario in order. Raises CaptureError."""
    for scenario in scenarios:
        begin(scenario.name)
        yield kept.account(scenario) or kept.play(scenario)
