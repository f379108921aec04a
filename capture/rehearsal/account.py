"""The account of a scenario: what the virtual kitchen sent, what was stored, and whether each loss has a name.

A lost packet is explained only when its true stamp lies inside a gap of the ledger whose cause fits a fault that
was done, and no gap may be longer than the faults that it meets by more than what starting again takes each time.
The cause of every gap and the verdict must be right too: `wrong_causes`.
"""

from __future__ import annotations

import filecmp
import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from capture.rehearsal.breaking import STRAY
from capture.rehearsal.hostile import wrong_in
from capture.rehearsal.scenarios import CAUSES, PLAYED, REFUSED
from capture.rehearsal.verdicts import (
    LATE_S,
    TrueLoss,
    coverage,
    latest_s,
    longest_step_s,
    session_end_ns,
    taken_for_an_end,
    wrong_verdict,
)
from sensors.hololens.catalogue import STREAMS
from storage.copies.copy_log import COPY_LOG
from storage.manifest import read_manifest
from storage.names import DERIVED
from storage.recording import open_recording
from storage.verify import verify

SLACK_NS = 2_000_000_000
"""A gap that is longer than its faults by this and two packet periods is a slow restart: a busy computer has them."""
HANGING_NS = 15_000_000_000
"""By this, nothing explains the rest of the gap."""

UNWRITTEN_TICKS = 10_000_000
"""What devices sent in the last second of a killed recorder can be known to nobody: it wrote down no later moment."""


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

    def row(self) -> dict[str, Any]:
        """Return the row as the contract has it."""
        return asdict(self)

    @property
    def is_fine(self) -> bool:
        """Tell whether everything is where it belongs or has a name."""
        return not (self.unexplained or self.duplicates or self.unreadable_files or self.wrong_causes)

    def blame(self, note: str, count: int = 1) -> None:
        """Count what nothing explains; the first few notes are kept."""
        self.unexplained += count
        self._note(note)

    def doubt(self, note: str) -> None:
        """Count a cause or a verdict that is wrong."""
        self.wrong_causes += 1
        self._note(note)

    def wait(self, note: str) -> None:
        """Count what took long and lost nothing more."""
        self.slow_restarts += 1
        self._note(note)

    def _note(self, note: str) -> None:
        if self.notes.count(";") < 3:
            self.notes = f"{self.notes}; {note}".strip("; ")


def settle(folder: Path) -> Account:
    """Account for the scenario that was played in `folder`."""
    scenario = json.loads((folder / "scenario.json").read_text())
    recording = folder / "data" / scenario["recording"]
    truth = json.loads((folder / "sim" / "truth.json").read_text())
    account = Account(folder.name)
    if (folder / REFUSED).exists():
        _settle_refusal(account, folder)
        return account
    checked = verify(recording)
    account.unreadable_files = sum(not _opens(path) for path in recording.rglob("*.h5"))
    lost = 0
    indexes: dict[str, npt.NDArray[np.void]] = {}
    with open_recording(recording) as opened:
        for name, facts in checked["streams"].items():
            if name not in truth["streams"]:
                continue  # a film of a camera
            indexes[name] = opened[name].index
            lines = (folder / "sim" / "truth" / f"{name}.jsonl").read_text().splitlines()
            ticks = Counter(int(json.loads(line)["ticks"]) for line in lines)
            sent = _asked(ticks, indexes[name], facts, scenario["faults"])
            lost += _settle_stream(account, name, indexes[name], sent, facts, scenario["faults"])
            told = truth["streams"][name]
            if facts["stored"] == told["packets"] and facts["sha256"] != told["sha256"]:
                account.blame(f"{name}: the stored bytes are not those that were sent")
    films = _settle_films(account, checked["streams"], truth, scenario["faults"])
    _settle_verdict(account, folder, checked, lost, films, indexes)
    if PLAYED[scenario["kind"]].hostile:
        for wrong in wrong_in(folder):
            account.blame(wrong)
    if PLAYED[scenario["kind"]].store:
        _settle_copy(account, recording, folder)
    return account


def _asked(
    sent: Counter[int], index: npt.NDArray[np.void], facts: dict[str, Any], faults: list[dict[str, Any]]
) -> Counter[int]:
    """Leave out what was sent after the recorder had stopped: stored is then the beginning of what was sent.

    A recorder that was killed has stopped at the last moment that it wrote down, at most `UNWRITTEN_TICKS` before.
    """
    if not len(index):
        return sent
    last = int(index["device_ticks"].max())
    if facts["ended"] == "stopped":
        return Counter({ticks: count for ticks, count in sent.items() if ticks <= last})
    if not any(fault.get("ends") for fault in faults):
        return sent
    last = max([last, *(int(gap["end_ticks"]) for gap in facts["gaps"])])
    unwritten = range(last + 1, last + UNWRITTEN_TICKS)
    return Counter({ticks: count for ticks, count in sent.items() if ticks not in unwritten})


def _settle_stream(
    account: Account,
    name: str,
    index: npt.NDArray[np.void],
    sent: Counter[int],
    facts: dict[str, Any],
    faults: list[dict[str, Any]],
) -> int:
    """Account for one stream; return how many of its packets are not here."""
    stored = Counter(index["device_ticks"].tolist())
    causes = {cause for fault in faults for cause in CAUSES[fault["kind"]]}
    account.produced += sent.total()
    account.stored += stored.total()
    account.duplicates += (stored - sent).total() + facts["duplicates"]
    if facts["gaps"] and not causes:
        account.blame(f"{name}: {len(facts['gaps'])} gaps and no fault that makes any")
    for gap in facts["gaps"]:
        excess_ns = excess_of(gap, index, faults)
        account.longest_excess_s = max(account.longest_excess_s, round(excess_ns / 1e9, 3))
        met = met_by(gap, index, faults)
        starts, period_ns = len({_span_of(fault) for fault in met}), _period_ns(index)
        said = f"{name}: a gap ({gap['cause']}) is {excess_ns / 1e9:.2f} s longer than the faults"
        if excess_ns > starts * (HANGING_NS + 2 * period_ns):
            account.blame(said)
        elif excess_ns > starts * (SLACK_NS + 2 * period_ns):
            account.wait(said)
        if not any(gap["cause"] in CAUSES[fault["kind"]] for fault in met):
            done = ", ".join(sorted({fault["kind"] for fault in met})) or "nothing"
            account.doubt(f"{name}: a gap is named {gap['cause']}, and done was {done}")
    if wrong := taken_for_an_end(name, facts["ended"], faults):
        account.doubt(wrong)
    unexplained: list[int] = []
    for ticks, count in (sent - stored).items():
        if any(_explains(gap, ticks, causes) for gap in facts["gaps"]):
            account.named_losses += count
        else:
            unexplained += count * [ticks]
    if unexplained:
        first = f"the first of tick {min(unexplained)}"
        account.blame(
            f"{name}: {len(unexplained)} packets, {first}, are lost and no gap explains them",
            len(unexplained),
        )
    return (sent - stored).total()


def _settle_films(
    account: Account, streams: dict[str, Any], truth: dict[str, Any], faults: list[dict[str, Any]]
) -> int:
    """Compare films with those of the truth; return how many are not here whole."""
    gone = {fault["kind"] for fault in faults} & {"camera_dies"}
    whole = {facts["sha256"] for name, facts in streams.items() if name not in truth["streams"]}
    absent = [film["file"] for film in truth["gopro"] if film["sha256"] not in whole]
    if absent and not gone:
        account.blame(f"not fetched from the camera: {', '.join(absent)}", len(absent))
    return max(len(absent), len(gone))  # the truth lists no film whose camera died before it was whole


def _settle_verdict(
    account: Account,
    folder: Path,
    checked: dict[str, Any],
    lost: int,
    films: int,
    indexes: dict[str, npt.NDArray[np.void]],
) -> None:
    """Hold the verdicts of `verify` and, where the recorder lived to give one, of `record` against the truth."""
    scenario = json.loads((folder / "scenario.json").read_text())
    account.verdict = checked["status"]
    seen = 0.0 if films else _least_coverage(folder, scenario, indexes)  # an armed camera without its film
    account.least_coverage = round(seen, 3)
    late = any(latest_s(index["host_ns"], index["device_ticks"]) > LATE_S for index in indexes.values())
    truth = TrueLoss(lost + films, account.least_coverage, is_untouched=not scenario["faults"] and not late)
    verdicts = {"verify": checked["status"]}
    if not scenario.get("recovered", PLAYED[scenario["kind"]].recover):
        verdicts["record"] = _status_in((folder / "record.json").read_text())
    for command, status in verdicts.items():
        if wrong := wrong_verdict(status, truth):
            account.doubt(f"`{command}` says {wrong}")
            if status == "FAIL":
                for reason in checked["reasons"]:
                    account.blame(reason)


def _status_in(printed: str) -> str:
    """Return the status of the one object that `record --json` prints."""
    try:
        return str(json.loads(printed)["status"])
    except (ValueError, KeyError):
        return "no answer"


def _least_coverage(
    folder: Path, scenario: dict[str, Any], indexes: dict[str, npt.NDArray[np.void]]
) -> float:
    manifest = read_manifest(folder / "data" / scenario["recording"])
    world0_ns = int(json.loads((folder / "sim" / "truth.json").read_text())["world0_host_ns"])
    filled = [index for index in indexes.values() if len(index)]
    if len(filled) < len(indexes) or not filled:
        return 0.0
    start_ns = max(int(index["host_ns"][0]) for index in filled)
    planned_ns = (world0_ns + round(scenario["seconds"] * 1e9), start_ns + round(scenario["record_s"] * 1e9))
    end_ns = session_end_ns(planned_ns, manifest.get("stopped") or {}, scenario["faults"])
    quickest_ns = min(int(np.min(index["host_ns"] - 100 * index["device_ticks"])) for index in filled)
    start_ticks = max(int(index["device_ticks"][0]) for index in filled)
    shares = []
    for name, index in indexes.items():
        hz = float(manifest["streams"][name].get("nominal_hz") or 0)
        step_s = longest_step_s(hz, adaptive=STREAMS[name.rpartition("/")[2]].adaptive)
        stop_ticks = max((end_ns - quickest_ns) // 100, int(index["device_ticks"].max()))
        shares.append(coverage(index["device_ticks"].astype(np.int64), start_ticks, stop_ticks, step_s))
    return min(shares)


def _explains(gap: dict[str, Any], ticks: int, causes: set[str]) -> bool:
    return gap["cause"] in causes and gap["start_ticks"] < ticks < gap["end_ticks"]


def excess_of(gap: dict[str, Any], index: npt.NDArray[np.void], faults: list[dict[str, Any]]) -> int:
    """Return how many nanoseconds of a gap lie outside of the faults' windows, on the host's clock.

    A gap lasts from the arrival of the packet before it to the arrival of the one after; where none came after, to
    the moment that its last stamp means by the quickest packet.
    """
    start_ns, end_ns = _span_ns(gap, index)
    inside_ns, done_ns = 0, start_ns
    for fault in sorted(faults, key=lambda fault: int(fault["start_host_ns"])):
        first_ns = max(int(fault["start_host_ns"]), done_ns)
        last_ns = min(int(fault["end_host_ns"]), end_ns)
        if last_ns > first_ns:
            inside_ns, done_ns = inside_ns + last_ns - first_ns, last_ns
    return end_ns - start_ns - inside_ns


def met_by(
    gap: dict[str, Any], index: npt.NDArray[np.void], faults: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the faults that a gap may come from: it lasts through them, or begins soon after."""
    start_ns, end_ns = _span_ns(gap, index)
    spans = [(fault, *_span_of(fault)) for fault in faults]
    return [fault for fault, first, last in spans if first <= end_ns and start_ns <= last + SLACK_NS]


def _span_of(fault: dict[str, Any]) -> tuple[int, int]:
    return int(fault["start_host_ns"]), int(fault["end_host_ns"])


def _span_ns(gap: dict[str, Any], index: npt.NDArray[np.void]) -> tuple[int, int]:
    """Return from when to when, on the host's clock, nothing arrived."""
    before = index[index["device_ticks"] == gap["start_ticks"]]
    after = index[index["device_ticks"] == gap["end_ticks"]]
    start_ns = int(before["host_ns"][0])
    if len(after):
        return start_ns, int(after["host_ns"][0])
    quickest_ns = int(np.min(index["host_ns"] - 100 * index["device_ticks"]))
    return start_ns, max(start_ns, 100 * gap["end_ticks"] + quickest_ns)


def _period_ns(index: npt.NDArray[np.void]) -> int:
    return int(np.median(np.diff(index["device_ticks"]))) * 100 if len(index) > 1 else 0


def _settle_copy(account: Account, recording: Path, folder: Path) -> None:
    """Look whether the store holds every file of the recording, byte for byte."""
    strays = [path for path in (folder / STRAY).rglob("*") if path.is_file()]
    if strays:
        account.blame(f"{len(strays)} files were written where no store was mounted", len(strays))
    copies = folder / "copies" if (folder / "copies").is_dir() else folder / "nas"
    for path in sorted(
        path for path in recording.rglob("*") if path.is_file() and path.name not in (COPY_LOG, DERIVED)
    ):
        copy = copies / recording.name / path.relative_to(recording)
        if not copy.is_file() or not filecmp.cmp(path, copy, shallow=False):
            account.blame(f"{path.relative_to(recording)} has no true copy on the store")


def _opens(path: Path) -> bool:
    """Tell whether stock h5py opens a file, and a chunk's index holds what it promises."""
    try:
        with h5py.File(path) as file:
            return "index" not in file or len(file["index"]) == int(file.attrs["count"])
    except (OSError, KeyError, RuntimeError):
        return False


def _settle_refusal(account: Account, folder: Path) -> None:
    """Blame what a refusal must not do: a code other than 1, other than one line, anything left behind."""
    facts = json.loads((folder / REFUSED).read_text())
    account.verdict = "refused"
    lines = facts["stderr"].strip().splitlines()
    if facts["exit"] != 1 or _status_in(facts["stdout"]) != "refused":
        account.doubt(f"`record` ended with {facts['exit']}, not with a refusal")
    if len(lines) != 1 or not lines[0].startswith("kitchensync: "):
        account.doubt(f"the refusal is not one line: {facts['stderr'].strip()[:200]!r}")
    for place in facts["left"]:
        account.blame(f"{place} was left behind")
    if facts["keys"]:
        account.blame(f"{facts['keys']} keys were left in the server")
