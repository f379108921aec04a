"""Kill processes of the recorder at random, many times a recording, and account for every packet.

    python -P benchmarks/recorder/kills.py [--kills 1000] [--seed 1] [--keep kills]

Producers, drainers, queue server and mover are killed while recording from relative paths; two recordings of three
end with SIGKILL for the recorder, or for it and all that it has started, and `kitchensync recover` from another
folder, which is killed too in half of them. All processes that die at one moment count as one kill. Recordings that
are fine are removed; the total is kept in KEEP/total.json, and the same command goes on there.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kitchensync.capture.process.supervised_process import DEATHS_WINDOW_S, MAX_DEATHS
from kitchensync.capture.served_kitchen import KITCHENSYNC, finish, process, simulator
from kitchensync.shell.host_clock import host_ns

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from rehearsal.account import BAD, Account
from rehearsal.breaking import PARTS, Fault, victims_of
from rehearsal.run import accounted
from rehearsal.scenarios import KILL_MANY, RECORDING
from rehearsal.stage import Recorder, keep_facts, record_command, recorder

WORLD_S = 24.0
"""Length of a recording in world seconds."""
RECORD_S = WORLD_S + 20.0
"""After so long the recorder is to stop, if the world does not end it before."""
LEAST_KILLS, MOST_KILLS = 12, 18
APART_S = 2.2
"""Kills come so far apart at most: some meet a process that has only begun."""
LAST_KILLS = ("none", "supervisor", "everyone")
"""What ends a recording: nobody, its recorder, or the recorder and all that it has started; in turn."""
MOST_OF_ONE = MAX_DEATHS - 2
"""So often one process may be killed within DEATHS_WINDOW_S; it may die by itself when the queue server is killed."""
TOTAL = "total.json"
LAST_S = WORLD_S - 5.0
"""Nobody is killed later in the world, on a computer that is slow: what follows must still be recorded."""
SECONDS_A_KILL = 3.5


@dataclass
class Total:
    """What was done and found in all recordings so far."""

    seed: int
    kills: int = 0
    recordings: int = 0
    sealed_files: int = 0
    unreadable_files: int = 0
    unexplained: int = 0
    duplicates: int = 0
    wrong_causes: int = 0
    by_part: dict[str, int] = field(default_factory=dict)
    bad: list[str] = field(default_factory=list)
    "Names of recordings that were kept because something in them is wrong."

    def add(self, account: Account, parts: list[str], sealed_files: int) -> None:
        """Count a recording."""
        self.kills += len(parts)
        self.recordings += 1
        self.sealed_files += sealed_files
        for key in BAD:
            setattr(self, key, getattr(self, key) + getattr(account, key))
        for part in parts:
            self.by_part[part] = self.by_part.get(part, 0) + 1
        if not account.is_fine:
            self.bad.append(f"{account.name}: {account.notes}")

    @property
    def last_line(self) -> str:
        """Return all of it in a line."""
        opens = (
            "every sealed file opens" if not self.unreadable_files else f"{self.unreadable_files} do not open"
        )
        return (
            f"{self.kills} kills in {self.recordings} recordings; {self.sealed_files} sealed files: {opens}; "
            f"unexplained {self.unexplained}, wrong causes {self.wrong_causes}, duplicates {self.duplicates}"
        )


def run(folder: Path, kills: int, seed: int) -> Iterator[tuple[Total, Account]]:
    """Record and kill until the total is reached; yield after each recording. Raises ValueError for another seed."""
    total = load(folder, seed)
    while total.kills < kills:
        number = total.recordings
        place = folder / f"{number:04d}-{KILL_MANY.name}"
        shutil.rmtree(place, ignore_errors=True)
        account, parts, sealed_files = one(place, number, seed)
        total.add(account, parts, sealed_files)
        if account.is_fine:
            shutil.rmtree(place)
        save(folder, total)
        yield total, account


def load(folder: Path, seed: int) -> Total:
    """Return what a folder holds so far. Raises ValueError where it was begun with another seed."""
    if not (folder / TOTAL).exists():
        folder.mkdir(parents=True, exist_ok=True)
        return Total(seed)
    total = Total(**json.loads((folder / TOTAL).read_text()))
    if total.seed != seed:
        raise ValueError(f"{folder} was begun with seed {total.seed}")
    return total


def save(folder: Path, total: Total) -> None:
    """Keep the total; it is whole at any moment."""
    part = folder / f"{TOTAL}.part"
    part.write_text(json.dumps(asdict(total), indent=1))
    part.replace(folder / TOTAL)


def one(folder: Path, number: int, seed: int) -> tuple[Account, list[str], int]:
    """Play one recording; return its account, who was killed in it, and how many files it has sealed."""
    chance, faults = random.Random(f"{seed} {number}"), list[Fault]()
    last = LAST_KILLS[number % len(LAST_KILLS)]
    account = accounted(folder, lambda place: faults.extend(_play(place, chance, last)))
    sealed = sum(1 for _ in (folder / "data" / RECORDING).rglob("*.h5"))
    return account, [fault["part"] for fault in faults if "part" in fault], sealed


def _play(folder: Path, chance: random.Random, last: str) -> list[Fault]:
    """Record, kill, recover where the recorder was killed; leave what `settle` reads; return the faults."""
    (folder / "nas").mkdir(parents=True)
    with simulator(folder, chance.randrange(1 << 30), WORLD_S) as kitchen:
        command = record_command(kitchen, "data", RECORD_S, "--nas", "nas")
        with recorder(command, folder, kitchen.environment, cwd=folder) as recording:
            faults = _kill(recording, chance, last)
            output = recording.output()
        if last != "none":
            faults += _recover(folder, kitchen.environment, chance)
            now_ns = host_ns()
            faults = [fault | {"end_host_ns": now_ns} if fault["ends"] else fault for fault in faults]
        move = ["move", os.path.join("data", RECORDING), "--to", "nas", "--keep"]
        finish(move, folder, kitchen.environment, cwd=folder)
    facts = {"kind": KILL_MANY.name, "seconds": WORLD_S, "record_s": RECORD_S}
    keep_facts(folder, output, {**facts, "recovered": last != "none", "faults": faults})
    return faults


def _kill(recording: Recorder, chance: random.Random, last: str) -> list[Fault]:
    """Kill one process after the other, at random moments; the last time the recorder too, if it is to be."""
    begun = recording.wait_for_all()
    faults: list[Fault] = []
    killed: list[tuple[str, float]] = []
    end_ns = min(int(facts["first_host_ns"]) for facts in begun["streams"].values()) + round(LAST_S * 1e9)
    for _ in range(chance.randint(LEAST_KILLS, MOST_KILLS) - (last != "none")):
        if host_ns() > end_ns:
            break
        time.sleep(chance.uniform(0.05, APART_S))
        if found := _spared(state := recording.state(), killed):
            part, pid = chance.choice(found)
            faults += _sent(part, [(part, pid)])
            killed.append((_name_of(state, part, pid), time.monotonic()))
    if last != "none":
        time.sleep(chance.uniform(0.05, APART_S))
        parts = PARTS if last == "everyone" else ("supervisor",)
        faults += _sent(last, victims_of(recording.state(), parts), ends=True)
    return faults


def _spared(state: dict[str, Any], killed: list[tuple[str, float]]) -> list[tuple[str, int]]:
    """Return (part, process) of all that may be killed: one that dies of itself again and again ends a recording."""
    since_s = time.monotonic() - DEATHS_WINDOW_S
    often = Counter(name for name, at_s in killed if at_s > since_s)
    every = victims_of(state, PARTS[1:])
    return [(part, pid) for part, pid in every if often[_name_of(state, part, pid)] < MOST_OF_ONE]


def _name_of(state: dict[str, Any], part: str, pid: int) -> str:
    return next((name for name, number in state["processes"].items() if number == pid), part)


def _sent(part: str, victims: list[tuple[str, int]], *, ends: bool = False) -> list[Fault]:
    """Send SIGKILL to living processes; return one fault for each, and count all at once as one kill of `part`."""
    start_ns, faults = host_ns(), list[Fault]()
    for name, pid in victims:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue  # it was about to go by itself: no kill
        faults.append({"kind": f"kill_{name}", "target": name, "ends": ends, "start_host_ns": start_ns})
    if faults:
        faults[0]["part"] = part
    return [fault | {"end_host_ns": host_ns()} for fault in faults]


def _recover(folder: Path, environment: dict[str, str], chance: random.Random) -> list[Fault]:
    """Recover from another folder; sometimes the one who recovers is killed too, and it is done again."""
    words, elsewhere = ["recover", "--data", os.path.join("..", "data")], folder / "sim"
    faults: list[Fault] = []
    if chance.random() < 0.5:
        with process([KITCHENSYNC, *words], folder, "recover", environment, cwd=elsewhere) as recovering:
            time.sleep(chance.uniform(0.3, 3.0))
            if recovering.poll() is None:
                faults = _sent("recover", [("supervisor", recovering.pid)], ends=True)
    finish(words, folder, environment, cwd=elsewhere)
    return faults


def main() -> int:
    """Kill and print; exit 1 when something is lost without a name, twice, unreadable, or named wrongly."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("kills"))
    options = parser.parse_args()
    folder = options.keep.resolve()
    try:
        total = load(folder, options.seed)
    except ValueError as error:
        print(f"{error}; give --keep another folder, or --seed", file=sys.stderr)
        return 1
    minutes = max(options.kills - total.kills, 0) * SECONDS_A_KILL / 60
    print(f"{total.kills} kills so far in {folder}; the rest takes about {minutes:.0f} minutes", flush=True)
    for counted, account in run(folder, options.kills, options.seed):
        total = counted
        fine = "fine" if account.is_fine else account.notes
        print(f"{total.kills:>6} kills {account.name} {account.seconds:5.1f} s {fine}", flush=True)
    for name in total.bad:
        print(f"not fine: {name}")
    print(f"killed: {', '.join(f'{part} {count}' for part, count in sorted(total.by_part.items()))}")
    print(total.last_line)
    return int(any(getattr(total, key) for key in BAD))


if __name__ == "__main__":
    sys.exit(main())
