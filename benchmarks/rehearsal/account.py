"""The account of a scenario: what the virtual kitchen sent, what is stored, and whether each loss has a right name.

A lost packet is explained only by a gap of the ledger around its true stamp, with a cause that an injected fault may
have. No gap may be much longer than the faults that it meets. Causes and verdicts must be right too.
"""

import filecmp
import json
from collections import Counter
from dataclasses import dataclass
from math import inf
from operator import itemgetter
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.storage.manifest import read_manifest
from kitchensync.storage.names import COPIES, DERIVED, STORES
from kitchensync.storage.recording import open_recording
from kitchensync.storage.verify import verify
from rehearsal import verdicts
from rehearsal.breaking import STRAY, Fault
from rehearsal.scenarios import CAUSES, PLAYED, REFUSED
from rehearsal.stage import status_in
from rehearsal.verdicts import Index

SLACK_NS = 2_000_000_000  # a gap longer than its faults by this and two periods is a slow restart
HANGING_NS = 15_000_000_000  # nothing explains a gap longer than its faults by this
UNWRITTEN_TICKS = 10_000_000  # nobody can know what devices sent in the last second of a killed recorder
BAD = ("unexplained", "duplicates", "unreadable_files", "wrong_causes")
"""Counts of an account that must be 0."""


@dataclass
class Account:
    """One row of `rehearse/1`.

    `slow_restarts` counts gaps longer than their faults by `SLACK_NS`, `longest_excess_s` is the worst.
    `wrong_causes` counts causes that no fault has and verdicts that the truth contradicts. `least_coverage` is that
    of the worst stream.
    """

    name: str
    produced: int = 0
    stored: int = 0
    named_losses: int = 0
    unexplained: int = 0
    duplicates: int = 0
    unreadable_files: int = 0
    slow_restarts: int = 0
    wrong_causes: int = 0
    verdict: str = ""
    least_coverage: float = 1.0
    notes: str = ""
    longest_excess_s: float = 0.0
    seconds: float = 0.0

    @property
    def is_fine(self) -> bool:
        """Return whether everything is stored or has a name, and every name is right."""
        return not any(getattr(self, key) for key in BAD)

    def add(self, key: str, note: str, count: int = 1) -> None:
        """Add to a count; keep one of the first few notes."""
        setattr(self, key, getattr(self, key) + count)
        if self.notes.count(";") < 3:
            self.notes = f"{self.notes}; {note}".strip("; ")


def settle(folder: Path) -> Account:
    """Account for the scenario that was played in `folder`. Raises OSError and StorageError."""
    account = Account(folder.name)
    if (folder / REFUSED).exists():
        _settle_refusal(account, json.loads((folder / REFUSED).read_text()))
        return account
    played = _Played(folder)
    for name in played.truth["streams"].keys() - played.streams.keys():
        account.add("unexplained", f"{name}: was sent, and the recording has no such stream")
    account.unreadable_files = sum(not _opens(path) for path in played.recording.rglob("*.h5"))
    lost = sum(_settle_sent(account, played, name) for name in played.indexes)
    films = _settle_films(account, played)
    _settle_verdict(account, played, lost + films, 0.0 if films else _least_coverage(played))
    if played.kind.store:
        _settle_copy(account, played)
    return account


class _Played:
    """What a scenario left in its folder, with the answer of `verify`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scenario = json.loads((folder / "scenario.json").read_text())
        self.truth = json.loads((folder / "sim" / "truth.json").read_text())
        self.kind, self.faults = PLAYED[self.scenario["kind"]], self.scenario["faults"]
        self.recording = folder / "data" / self.scenario["recording"]
        self.checked = verify(self.recording)
        self.streams: dict[str, Any] = self.checked["streams"]
        with open_recording(self.recording) as opened:  # films of a camera have no index
            self.indexes = {
                name: opened[name].index for name in self.streams if name in self.truth["streams"]
            }


def _settle_sent(account: Account, played: _Played, name: str) -> int:
    """Account for one stream by what was sent of it; return how many of its packets are lost."""
    facts, index, truth = played.streams[name], played.indexes[name], played.truth["streams"][name]
    if facts["stored"] == truth["packets"] and facts["sha256"] != truth["sha256"]:
        account.add("unexplained", f"{name}: the stored bytes are not those that were sent")
    lines = (played.folder / "sim" / "truth" / f"{name}.jsonl").read_text().splitlines()
    sent = Counter(int(json.loads(line)["ticks"]) for line in lines)
    unknown = _unknown_ticks(index, facts, played.faults)
    sent = Counter({ticks: count for ticks, count in sent.items() if not unknown[0] < ticks < unknown[1]})
    return settle_stream(account, name, index, sent, facts, played.faults)


def _unknown_ticks(index: Index, facts: dict[str, Any], faults: list[Fault]) -> tuple[float, float]:
    """Return between which stamps the recorder had ended, or was killed before it wrote down what came."""
    last = int(index["device_ticks"].max(initial=0))
    if len(index) and facts["ended"] == "stopped":
        return last, inf
    if len(index) and any(fault.get("ends") for fault in faults):
        last = max([last, *(int(gap["end_ticks"]) for gap in facts["gaps"])])
        return last, last + UNWRITTEN_TICKS
    return inf, inf


def settle_stream(
    account: Account, name: str, index: Index, sent: Counter[int], facts: dict[str, Any], faults: list[Fault]
) -> int:
    """Account for one stream's packets and gaps; return how many of its packets are lost."""
    stored = Counter(index["device_ticks"].tolist())
    lost = sent - stored
    account.produced += sent.total()
    account.stored += stored.total()
    account.duplicates += (stored - sent).total() + facts["duplicates"]
    causes = {cause for fault in faults for cause in CAUSES[fault["kind"]]}
    if facts["gaps"] and not causes:
        account.add("unexplained", f"{name}: {len(facts['gaps'])} gaps and no fault that makes any")
    for gap in facts["gaps"]:
        _settle_gap(account, name, gap, index, faults)
    spans = [(gap["start_ticks"], gap["end_ticks"]) for gap in facts["gaps"] if gap["cause"] in causes]
    unexplained = [ticks for ticks in lost.elements() if not any(a < ticks < b for a, b in spans)]
    account.named_losses += lost.total() - len(unexplained)
    if unexplained:
        note = f"{len(unexplained)} packets, the first of tick {min(unexplained)}, are lost and no gap explains them"
        account.add("unexplained", f"{name}: {note}", len(unexplained))
    for fault in faults if facts["ended"] == "ended_by_device" else ():
        if fault["kind"] == "headset_dies" or (fault["kind"] == "dead_port" and fault["target"] == name):
            account.add("wrong_causes", f"{name}: ended by its device, though {fault['kind']}")
    return lost.total()


def _settle_gap(account: Account, name: str, gap: dict[str, Any], index: Index, faults: list[Fault]) -> None:
    """Check the length and the cause of a gap against the faults that it meets."""
    excess_ns, met = excess_of(gap, index, faults), met_by(gap, index, faults)
    account.longest_excess_s = max(account.longest_excess_s, round(excess_ns / 1e9, 3))
    restarts = len({(fault["start_host_ns"], fault["end_host_ns"]) for fault in met})
    periods_ns = 200 * int(np.median(np.diff(index["device_ticks"]))) if len(index) > 1 else 0
    if excess_ns > restarts * (SLACK_NS + periods_ns):
        is_hanging = excess_ns > restarts * (HANGING_NS + periods_ns)
        note = f"{name}: a gap ({gap['cause']}) is {excess_ns / 1e9:.2f} s longer than the faults"
        account.add("unexplained" if is_hanging else "slow_restarts", note)
    if not any(gap["cause"] in CAUSES[fault["kind"]] for fault in met):
        done = ", ".join(sorted({fault["kind"] for fault in met})) or "nothing"
        account.add("wrong_causes", f"{name}: a gap is named {gap['cause']}, and done was {done}")


def excess_of(gap: dict[str, Any], index: Index, faults: list[Fault]) -> int:
    """Return how many nanoseconds of a gap lie outside of the faults, on the host's clock."""
    done_ns, end_ns = _span_ns(gap, index)
    excess_ns = 0
    for fault in sorted(faults, key=itemgetter("start_host_ns")):
        excess_ns += max(0, min(fault["start_host_ns"], end_ns) - done_ns)
        done_ns = max(done_ns, min(fault["end_host_ns"], end_ns))
    return excess_ns + end_ns - done_ns


def met_by(gap: dict[str, Any], index: Index, faults: list[Fault]) -> list[Fault]:
    """Return the faults that a gap may come from: during it, or within `SLACK_NS` before it."""
    start_ns, end_ns = _span_ns(gap, index)
    begun = [fault for fault in faults if fault["start_host_ns"] <= end_ns]
    return [fault for fault in begun if start_ns <= fault["end_host_ns"] + SLACK_NS]


def _span_ns(gap: dict[str, Any], index: Index) -> tuple[int, int]:
    """Return when the packets around a gap arrived; without one after it, when its last stamp would have at best."""
    before, after = (index[index["device_ticks"] == gap[edge]] for edge in ("start_ticks", "end_ticks"))
    start_ns = int(before["host_ns"][0])
    if len(after):
        return start_ns, int(after["host_ns"][0])
    return start_ns, max(start_ns, 100 * gap["end_ticks"] + verdicts.quickest_ns(index))


def _settle_films(account: Account, played: _Played) -> int:
    """Compare films with those of the truth; return how many are not stored whole."""
    is_dead = any(fault["kind"] == "camera_dies" for fault in played.faults)
    whole = {facts["sha256"] for name, facts in played.streams.items() if name not in played.indexes}
    absent = [film["file"] for film in played.truth["gopro"] if film["sha256"] not in whole]
    if absent and not is_dead:
        account.add("unexplained", f"not fetched from the camera: {', '.join(absent)}", len(absent))
    return max(len(absent), is_dead)  # the truth lists no film that its camera did not finish


def _settle_verdict(account: Account, played: _Played, lost: int, covered: float) -> None:
    """Check the verdicts of `verify` and of `record`, if it lived to give one, against the truth."""
    account.verdict = played.checked["status"]
    account.least_coverage = round(covered, 3)
    is_untouched = not played.faults and not any(map(verdicts.is_late, played.indexes.values()))
    given = {"verify": account.verdict}
    if not played.scenario.get("recovered", played.kind.recover):
        given["record"] = status_in((played.folder / "record.json").read_text()) or "no answer"
    for command, status in given.items():
        if wrong := verdicts.wrong_verdict(status, lost, account.least_coverage, is_untouched=is_untouched):
            account.add("wrong_causes", f"`{command}` says {wrong}")
            for reason in played.checked["reasons"] if status == "FAIL" else ():
                account.add("unexplained", reason)


def _least_coverage(played: _Played) -> float:
    """Return the share of the session that the stream with the least covers."""
    indexes, manifest = played.indexes.values(), read_manifest(played.recording)
    if not indexes or not all(map(len, indexes)):
        return 0.0
    start_ns = max(int(index["host_ns"][0]) for index in indexes)
    planned_ns = [
        played.truth["world0_host_ns"] + round(played.scenario["seconds"] * 1e9),
        start_ns + round(played.scenario["record_s"] * 1e9),
    ]
    end_ns = verdicts.session_end_ns(planned_ns, manifest.get("stopped") or {}, played.faults)
    start_ticks = max(int(index["device_ticks"][0]) for index in indexes)
    end_ticks = (end_ns - min(map(verdicts.quickest_ns, indexes))) // 100
    shares = []
    for name, index in played.indexes.items():
        hz, stamps = manifest["streams"][name].get("nominal_hz"), index["device_ticks"].astype(np.int64)
        step_s = verdicts.longest_step_s(hz or 0.0, adaptive=STREAMS[name.rpartition("/")[2]].adaptive)
        shares.append(verdicts.coverage(stamps, start_ticks, max(end_ticks, int(stamps.max())), step_s))
    return min(shares)


def _settle_copy(account: Account, played: _Played) -> None:
    """Check that the store holds every file of the recording, byte for byte."""
    strays = [path for path in (played.folder / STRAY).rglob("*") if path.is_file()]
    if strays:
        account.add("unexplained", f"{len(strays)} files were written where no store was", len(strays))
    copy = played.folder / ("copies" if played.kind.mounts == "nas" else "nas") / played.recording.name
    for path in sorted(played.recording.rglob("*")):
        if path.is_file() and path.name not in (COPIES, DERIVED, STORES):
            place = path.relative_to(played.recording)
            if not (copy / place).is_file() or not filecmp.cmp(path, copy / place, shallow=False):
                account.add("unexplained", f"{place} has no true copy on the store")


def _opens(path: Path) -> bool:
    """Return whether stock h5py opens a file, and a chunk's index holds as many packets as it promises."""
    try:
        with h5py.File(path) as file:
            return "index" not in file or len(file["index"]) == int(file.attrs["count"])
    except (OSError, KeyError, RuntimeError):
        return False


def _settle_refusal(account: Account, refusal: dict[str, Any]) -> None:
    """Check that a refusal exits with 1, says one line and leaves nothing."""
    account.verdict = "refused"
    stderr = refusal["stderr"].strip()
    if refusal["exit"] != 1 or status_in(refusal["stdout"]) != "refused":
        account.add("wrong_causes", f"`record` ended with {refusal['exit']}, not with a refusal")
    if len(stderr.splitlines()) != 1 or not stderr.startswith("kitchensync: "):
        account.add("wrong_causes", f"the refusal is not one line: {stderr[:200]!r}")
    for left in refusal["left"]:
        account.add("unexplained", f"{left} was left behind")
