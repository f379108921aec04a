"""The account of a scenario: what the virtual kitchen sent, what was stored, and whether each loss has a name.

A lost packet is explained only when its true stamp lies inside a gap of the ledger whose cause fits a fault that
was done, and no gap may be longer than the faults that it meets by more than what starting again takes each time.
The cause of every gap and the verdict must be right too: `wrong_causes`.
"""

from __future__ import annotations

import filecmp
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.storage.copies.copy_log import COPY_LOG
from kitchensync.storage.manifest import read_manifest
from kitchensync.storage.names import DERIVED, STORES
from kitchensync.storage.recording import open_recording
from kitchensync.storage.verify import verify
from rehearsal.breaking import STRAY, Fault
from rehearsal.hostile import wrong_in
from rehearsal.scenarios import CAUSES, PLAYED, REFUSED
from rehearsal.stage import status_in
from rehearsal.verdicts import (
    LATE_S,
    coverage,
    latest_s,
    longest_step_s,
    session_end_ns,
    taken_for_an_end,
    wrong_verdict,
)

SLACK_NS = 2_000_000_000
"""A gap that is longer than its faults by this and two packet periods is a slow restart: a busy computer has them."""
HANGING_NS = 15_000_000_000
"""By this, nothing explains the rest of the gap."""

UNWRITTEN_TICKS = 10_000_000
"""What devices sent in the last second of a killed recorder can be known to nobody: it wrote down no later moment."""
BAD = ("unexplained", "duplicates", "unreadable_files", "wrong_causes")
"""Counts of an account that must be 0."""

Index = npt.NDArray[np.void]
"""Of a stream's packets, `kitchensync.storage.chunks.layout.INDEX`."""


@dataclass
class Account:
    """One row of the table, with the keys of `rehearse/1`."""

    name: str
    produced: int = 0
    stored: int = 0
    named_losses: int = 0
    unexplained: int = 0
    duplicates: int = 0
    unreadable_files: int = 0
    slow_restarts: int = 0
    "Gaps that are longer than the faults that they meet, as long as it may take to start a process again."
    wrong_causes: int = 0
    "Gaps whose cause no fault explains, and verdicts that the truth does not bear out."
    verdict: str = ""
    least_coverage: float = 1.0
    "Of the stream that covers least of the session, by the stamps that were sent."
    notes: str = ""
    longest_excess_s: float = 0.0
    "By how much the worst gap is longer than the faults that it meets."
    seconds: float = 0.0

    @property
    def is_fine(self) -> bool:
        """Return whether everything is stored or has a name, and every name is right."""
        return not any(getattr(self, key) for key in BAD)

    def blame(self, note: str, count: int = 1) -> None:
        """Count what nothing explains."""
        self.unexplained += count
        self.note(note)

    def doubt(self, note: str) -> None:
        """Count a cause or a verdict that is wrong."""
        self.wrong_causes += 1
        self.note(note)

    def note(self, note: str) -> None:
        """Keep one of the first few notes."""
        if self.notes.count(";") < 3:
            self.notes = f"{self.notes}; {note}".strip("; ")


def settle(folder: Path) -> Account:
    """Account for the scenario that was played in `folder`."""
    account = Account(folder.name)
    if (folder / REFUSED).exists():
        _settle_refusal(account, _read(folder / REFUSED))
        return account
    played = _Played(folder)
    account.unreadable_files = sum(not _opens(path) for path in played.recording.rglob("*.h5"))
    lost = sum(_settle_sent(account, played, name) for name in played.indexes)
    films = _settle_films(account, played)
    _settle_verdict(account, played, lost + films, 0.0 if films else _least_coverage(played))
    if played.kind.hostile:
        for wrong in wrong_in(folder):
            account.blame(wrong)
    if played.kind.store:
        _settle_copy(account, played)
    return account


def _read(path: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(path.read_text())
    return facts


class _Played:
    """What a scenario left in its folder, with the answer of `verify`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scenario = _read(folder / "scenario.json")
        self.faults: list[Fault] = self.scenario["faults"]
        self.kind = PLAYED[self.scenario["kind"]]
        self.truth = _read(folder / "sim" / "truth.json")
        self.recording = folder / "data" / self.scenario["recording"]
        self.checked = verify(self.recording)
        self.streams: dict[str, Any] = self.checked["streams"]
        with open_recording(self.recording) as opened:
            # The others are films of a camera.
            self.indexes = {
                name: opened[name].index for name in self.streams if name in self.truth["streams"]
            }

    def sent(self, name: str) -> Counter[int]:
        """Return the stamps that the virtual kitchen sent of a stream while it was recorded."""
        lines = (self.folder / "sim" / "truth" / f"{name}.jsonl").read_text().splitlines()
        sent = Counter(int(json.loads(line)["ticks"]) for line in lines)
        return _asked(sent, self.indexes[name], self.streams[name], self.faults)


def _asked(sent: Counter[int], index: Index, facts: dict[str, Any], faults: list[Fault]) -> Counter[int]:
    """Leave out what was sent after the recorder had stopped: stored is then the beginning of what was sent.

    A recorder that was killed has stopped at the last moment that it wrote down, at most `UNWRITTEN_TICKS` before.
    """
    last = int(index["device_ticks"].max(initial=0))
    if len(index) and facts["ended"] == "stopped":
        return Counter({ticks: count for ticks, count in sent.items() if ticks <= last})
    if not len(index) or not any(fault.get("ends") for fault in faults):
        return sent
    last = max([last, *(int(gap["end_ticks"]) for gap in facts["gaps"])])
    return Counter(
        {ticks: count for ticks, count in sent.items() if not last < ticks < last + UNWRITTEN_TICKS}
    )


def _settle_sent(account: Account, played: _Played, name: str) -> int:
    """Account for one stream by what was sent of it; return how many of its packets are not here."""
    facts, told = played.streams[name], played.truth["streams"][name]
    lost = settle_stream(account, name, played.indexes[name], played.sent(name), facts, played.faults)
    if facts["stored"] == told["packets"] and facts["sha256"] != told["sha256"]:
        account.blame(f"{name}: the stored bytes are not those that were sent")
    return lost


def settle_stream(
    account: Account, name: str, index: Index, sent: Counter[int], facts: dict[str, Any], faults: list[Fault]
) -> int:
    """Account for one stream's packets and gaps; return how many of its packets are not here."""
    stored = Counter(index["device_ticks"].tolist())
    lost = sent - stored
    account.produced += sent.total()
    account.stored += stored.total()
    account.duplicates += (stored - sent).total() + facts["duplicates"]
    causes = {cause for fault in faults for cause in CAUSES[fault["kind"]]}
    if facts["gaps"] and not causes:
        account.blame(f"{name}: {len(facts['gaps'])} gaps and no fault that makes any")
    for gap in facts["gaps"]:
        _settle_gap(account, name, gap, index, faults)
    if wrong := taken_for_an_end(name, facts["ended"], faults):
        account.doubt(wrong)
    spans = [(gap["start_ticks"], gap["end_ticks"]) for gap in facts["gaps"] if gap["cause"] in causes]
    unexplained = [
        ticks for ticks in lost.elements() if not any(first < ticks < last for first, last in spans)
    ]
    account.named_losses += lost.total() - len(unexplained)
    if unexplained:
        said = f"{len(unexplained)} packets, the first of tick {min(unexplained)}, are lost and no gap explains them"
        account.blame(f"{name}: {said}", len(unexplained))
    return lost.total()


def _settle_gap(account: Account, name: str, gap: dict[str, Any], index: Index, faults: list[Fault]) -> None:
    """Hold the length and the cause of a gap against the faults that it meets."""
    excess_ns, met = excess_of(gap, index, faults), met_by(gap, index, faults)
    account.longest_excess_s = max(account.longest_excess_s, round(excess_ns / 1e9, 3))
    starts, period_ns = len({_span_of(fault) for fault in met}), _period_ns(index)
    said = f"{name}: a gap ({gap['cause']}) is {excess_ns / 1e9:.2f} s longer than the faults"
    if excess_ns > starts * (HANGING_NS + 2 * period_ns):
        account.blame(said)
    elif excess_ns > starts * (SLACK_NS + 2 * period_ns):
        account.slow_restarts += 1
        account.note(said)
    if not any(gap["cause"] in CAUSES[fault["kind"]] for fault in met):
        done = ", ".join(sorted({fault["kind"] for fault in met})) or "nothing"
        account.doubt(f"{name}: a gap is named {gap['cause']}, and done was {done}")


def _settle_films(account: Account, played: _Played) -> int:
    """Compare films with those of the truth; return how many are not here whole."""
    is_gone = any(fault["kind"] == "camera_dies" for fault in played.faults)
    whole = {facts["sha256"] for name, facts in played.streams.items() if name not in played.indexes}
    absent = [film["file"] for film in played.truth["gopro"] if film["sha256"] not in whole]
    if absent and not is_gone:
        account.blame(f"not fetched from the camera: {', '.join(absent)}", len(absent))
    return max(len(absent), is_gone)  # the truth lists no film whose camera died before it was whole


def _settle_verdict(account: Account, played: _Played, lost: int, covered: float) -> None:
    """Hold the verdicts of `verify` and, where the recorder lived to give one, of `record` against the truth."""
    account.verdict = played.checked["status"]
    account.least_coverage = round(covered, 3)
    stamps = [(index["host_ns"], index["device_ticks"]) for index in played.indexes.values()]
    is_untouched = not played.faults and all(latest_s(*one) <= LATE_S for one in stamps)
    verdicts = {"verify": account.verdict}
    if not played.scenario.get("recovered", played.kind.recover):
        verdicts["record"] = status_in((played.folder / "record.json").read_text()) or "no answer"
    for command, status in verdicts.items():
        if wrong := wrong_verdict(status, lost, account.least_coverage, is_untouched=is_untouched):
            account.doubt(f"`{command}` says {wrong}")
            if status == "FAIL":
                for reason in played.checked["reasons"]:
                    account.blame(reason)


def _least_coverage(played: _Played) -> float:
    """Return the share of the session that the stream with the least covers."""
    indexes = list(played.indexes.values())
    if not indexes or not all(len(index) for index in indexes):
        return 0.0
    manifest, scenario = read_manifest(played.recording), played.scenario
    start_ns = max(int(index["host_ns"][0]) for index in indexes)
    planned_ns = (
        int(played.truth["world0_host_ns"]) + round(scenario["seconds"] * 1e9),
        start_ns + round(scenario["record_s"] * 1e9),
    )
    end_ns = session_end_ns(planned_ns, manifest.get("stopped") or {}, played.faults)
    start_ticks = max(int(index["device_ticks"][0]) for index in indexes)
    end_ticks = (end_ns - min(map(_quickest_ns, indexes))) // 100
    shares = []
    for name, index in played.indexes.items():
        hz = float(manifest["streams"][name].get("nominal_hz") or 0)
        step_s = longest_step_s(hz, adaptive=STREAMS[name.rpartition("/")[2]].adaptive)
        stop_ticks = max(end_ticks, int(index["device_ticks"].max()))
        shares.append(coverage(index["device_ticks"].astype(np.int64), start_ticks, stop_ticks, step_s))
    return min(shares)


def excess_of(gap: dict[str, Any], index: Index, faults: list[Fault]) -> int:
    """Return how many nanoseconds of a gap lie outside of the faults' windows, on the host's clock.

    A gap lasts from the arrival of the packet before it to the arrival of the one after; where none came after, to
    the moment that its last stamp means by the quickest packet.
    """
    done_ns, end_ns = _span_ns(gap, index)
    excess_ns = 0
    for first_ns, last_ns in sorted(map(_span_of, faults)):
        excess_ns += max(0, min(first_ns, end_ns) - done_ns)
        done_ns = max(done_ns, min(last_ns, end_ns))
    return excess_ns + end_ns - done_ns


def met_by(gap: dict[str, Any], index: Index, faults: list[Fault]) -> list[Fault]:
    """Return the faults that a gap may come from: it lasts through them, or begins soon after."""
    start_ns, end_ns = _span_ns(gap, index)
    return [
        fault
        for fault in faults
        if fault["start_host_ns"] <= end_ns and start_ns <= fault["end_host_ns"] + SLACK_NS
    ]


def _span_of(fault: Fault) -> tuple[int, int]:
    return int(fault["start_host_ns"]), int(fault["end_host_ns"])


def _span_ns(gap: dict[str, Any], index: Index) -> tuple[int, int]:
    """Return from when to when, on the host's clock, nothing arrived."""
    before = index[index["device_ticks"] == gap["start_ticks"]]
    after = index[index["device_ticks"] == gap["end_ticks"]]
    start_ns = int(before["host_ns"][0])
    if len(after):
        return start_ns, int(after["host_ns"][0])
    return start_ns, max(start_ns, 100 * gap["end_ticks"] + _quickest_ns(index))


def _quickest_ns(index: Index) -> int:
    """Return by how much the host's clock is ahead of the stamps, by the quickest packet."""
    return int(np.min(index["host_ns"] - 100 * index["device_ticks"]))


def _period_ns(index: Index) -> int:
    return int(np.median(np.diff(index["device_ticks"]))) * 100 if len(index) > 1 else 0


def _settle_copy(account: Account, played: _Played) -> None:
    """Check that the store holds every file of the recording, byte for byte."""
    strays = [path for path in (played.folder / STRAY).rglob("*") if path.is_file()]
    if strays:
        account.blame(f"{len(strays)} files were written where no store was mounted", len(strays))
    copies = played.folder / ("copies" if played.kind.mounts == "nas" else "nas") / played.recording.name
    for path in sorted(played.recording.rglob("*")):
        if path.is_file() and path.name not in (COPY_LOG, DERIVED, STORES):
            place = path.relative_to(played.recording)
            if not (copies / place).is_file() or not filecmp.cmp(path, copies / place, shallow=False):
                account.blame(f"{place} has no true copy on the store")


def _opens(path: Path) -> bool:
    """Return whether stock h5py opens a file, and a chunk's index holds as many packets as it promises."""
    try:
        with h5py.File(path) as file:
            return "index" not in file or len(file["index"]) == int(file.attrs["count"])
    except (OSError, KeyError, RuntimeError):
        return False


def _settle_refusal(account: Account, facts: dict[str, Any]) -> None:
    """Blame what a refusal must not do: a code other than 1, other than one line, anything left behind."""
    account.verdict = "refused"
    lines = facts["stderr"].strip().splitlines()
    if facts["exit"] != 1 or status_in(facts["stdout"]) != "refused":
        account.doubt(f"`record` ended with {facts['exit']}, not with a refusal")
    if len(lines) != 1 or not lines[0].startswith("kitchensync: "):
        account.doubt(f"the refusal is not one line: {facts['stderr'].strip()[:200]!r}")
    for place in facts["left"]:
        account.blame(f"{place} was left behind")
    if facts["keys"]:
        account.blame(f"{facts['keys']} keys were left in the server")
