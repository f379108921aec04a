"""A second opinion on a rehearsal, worked out from what `rehearse --keep DIR` left, importing nothing of ours.

    python tests/support/checks/second_checker.py DIR

The files are read with stock h5py, ledger and verdict are asked of the command `kitchensync verify --json`, the rules
are written down once more. Prints a line a scenario; exit 1 when a packet has no explanation, a gap a cause that was
not done, or a verdict is wrong.
"""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

import h5py

COMMAND = Path(sys.executable).parent / "kitchensync"
SLACK_NS = 2_000_000_000
HANGING_NS = 15_000_000_000
"""No restart takes so long; how many take more than 2 s is in the account of `rehearse`."""


def may_explain(fault: str) -> set[str]:
    """Return the causes that a fault may have in the ledger."""
    if fault in ("kill_producer", "stop_producer", "kill_supervisor"):
        return {"restart", "reconnect"}
    if fault in ("cut_socket", "cut_packet", "restart_app", "dead_port", "headset_dies"):
        return {"network", "reconnect"}
    return {
        "kill_queue": {"queue_loss", "declared_loss"},
        "stop_queue": {"backpressure", "queue_loss", "declared_loss"},
        "disk_full": {"no_space", "declared_loss"},
        "suspend": {"suspend", "reconnect"},
    }.get(fault, set())


def stored_packets(folder: Path) -> list[tuple[int, int, int]]:
    """Read (sequence number, device ticks, arrival) of a stream's packets from its files."""
    rows = []
    for path in sorted(folder.glob("*.h5")):
        with h5py.File(path, "r") as file:
            index = file["index"][:]
        rows += zip(*(index[field].tolist() for field in ("seq", "device_ticks", "host_ns")), strict=True)
    return rows


def too_long(gap: dict, rows: list[tuple[int, int, int]], faults: list[dict]) -> bool:
    """Return whether a gap exceeds the faults that it meets by more than a restart on a busy computer takes."""
    arrival = {ticks: host_ns for _, ticks, host_ns in rows}
    start = arrival[gap["start_ticks"]]
    quickest = min(host_ns - 100 * ticks for _, ticks, host_ns in rows)
    end = arrival.get(gap["end_ticks"], max(start, 100 * gap["end_ticks"] + quickest))
    edges = sorted({start, end} | {f[k] for f in faults for k in ("start_host_ns", "end_host_ns")})
    outside = sum(
        right - left
        for left, right in itertools.pairwise(edges)
        if start <= left and right <= end
        and not any(f["start_host_ns"] <= left and right <= f["end_host_ns"] for f in faults)
    )  # fmt: skip
    stamps = [ticks for _, ticks, _ in rows]
    steps = [b - a for a, b in itertools.pairwise(stamps)]
    windows = {(f["start_host_ns"], f["end_host_ns"]) for f in faults}
    met = sum(first <= end and start <= last + SLACK_NS for first, last in windows)
    return outside > met * (HANGING_NS + 2 * 100 * statistics.median(steps or [0]))


def fitting(gap: dict, rows: list[tuple[int, int, int]], faults: list[dict]) -> bool:
    """Return whether one of the faults during a gap, or in the 2 s before it, may have made it under this cause."""
    arrival = {ticks: host_ns for _, ticks, host_ns in rows}
    start = arrival[gap["start_ticks"]]
    end = arrival.get(gap["end_ticks"])
    return any(
        gap["cause"] in may_explain(f["kind"])
        for f in faults
        if start <= f["end_host_ns"] + SLACK_NS and (end is None or f["start_host_ns"] <= end)
    )


def share_covered(ticks: list[int], begin: int, stop: int) -> float:
    """Add up the steps of at most three usual ones (half a second where that is more: rates may adapt)."""
    steps = [b - a for a, b in itertools.pairwise(ticks)]
    longest = max(3 * statistics.median(steps or [0]), 5_000_000)
    end = ticks[-1] if stop - ticks[-1] <= 10_000_000 else stop
    inside = [begin, *(t for t in ticks if begin < t < end), end]
    return sum(b - a for a, b in itertools.pairwise(inside) if b - a <= longest) / max(end - begin, 1)


def wrong_status(status: str, lost: int, covered: float, faults: list[dict]) -> bool:
    """Return whether a verdict is not borne out; where half a second does not matter to it, it is left open."""
    if status == "PASS":
        return bool(lost) or covered < 0.9
    return covered > 0.6 if status == "FAIL" else not (lost or faults) and covered > 0.99


def check(folder: Path, verified: dict) -> tuple[int, int, int, list[str]]:
    """Recompute one row from the files: sent, stored, named losses, and what is wrong."""
    scenario = json.loads((folder / "scenario.json").read_text())
    if scenario.get("kind") == "clustered_server":
        data = folder / "data"
        left = list(data.iterdir()) if data.exists() else []
        return 0, 0, 0, [f"{path} was left by a refusal" for path in left]
    faults = scenario["faults"]
    causes = set().union(*(may_explain(fault["kind"]) for fault in faults)) if faults else set()
    wrong: list[str] = []
    sent_total = stored_total = named = lost = 0
    kept: dict[str, list[tuple[int, int, int]]] = {}
    for name, facts in verified["streams"].items():
        file = folder / "sim" / "truth" / f"{name}.jsonl"
        if not file.exists():
            continue  # a film
        rows = stored_packets(folder / "data" / scenario["recording"] / name)
        sent = Counter(json.loads(line)["ticks"] for line in file.read_text().splitlines())
        if facts.get("ended") == "stopped" and rows:
            sent = Counter({ticks: n for ticks, n in sent.items() if ticks <= max(row[1] for row in rows)})
        kept[name] = rows
        stored = Counter(ticks for _, ticks, _ in rows)
        twice = len(rows) - len({seq for seq, _, _ in rows})
        sent_total, stored_total = sent_total + sent.total(), stored_total + stored.total()
        lost += (sent - stored).total()
        if twice or (stored - sent).total():
            wrong.append(f"{name}: {twice} twice, {(stored - sent).total()} never sent")
        gaps = facts["gaps"]
        for ticks, count in (sent - stored).items():
            inside = [gap for gap in gaps if gap["start_ticks"] < ticks < gap["end_ticks"]]
            fits = any(gap["cause"] in causes for gap in inside)
            named += count if fits else 0
            if not fits:
                wrong.append(f"{name}: tick {ticks} has no explanation")
        if gaps and not causes:
            wrong.append(f"{name}: gaps without a fault: {gaps}")
        wrong += [f"{name}: {gap} lasts longer than its fault" for gap in gaps if too_long(gap, rows, faults)]
        died = ("headset_dies", "dead_port")
        dead = any(f["kind"] in died and f.get("target") in ("hololens", name) for f in faults)
        if dead and facts.get("ended") == "ended_by_device":
            wrong.append(f"{name}: a death was taken for an end")
        wrong += [f"{name}: nobody did what {gap} says" for gap in gaps if not fitting(gap, rows, faults)]
    covered = least_covered(folder, scenario, kept)
    if any(fault["kind"] == "camera_dies" for fault in faults):
        lost, covered = lost + 1, 0.0  # its film stays on the card
    delays = [{row[2] - 100 * row[1] for row in rows} or {0} for rows in kept.values()]
    late = any(max(of_one) - min(of_one) > 1_000_000_000 for of_one in delays)
    if "status" in verified and wrong_status(verified["status"], lost, covered, [*faults, *([{}] * late)]):
        wrong.append(f"{verified['status']} of {lost} lost and {covered:.2f} covered")
    return sent_total, stored_total, named, wrong


def least_covered(folder: Path, scenario: dict, kept: dict[str, list[tuple[int, int, int]]]) -> float:
    """Return how much of the session the worst stream covers; the world's end, a stop or a kill ends it."""
    streams = [sorted(row[1] for row in rows) for rows in kept.values()]
    if "seconds" not in scenario or not all(streams):
        return 1.0 if "seconds" not in scenario else 0.0
    truth = json.loads((folder / "sim" / "truth.json").read_text())
    stopped = json.loads((folder / "data" / scenario["recording"] / "recording.json").read_text())["stopped"]
    kills = [f["start_host_ns"] for f in scenario["faults"] if f["kind"] == "kill_supervisor"]
    first = max(min(host_ns for _, _, host_ns in rows) for rows in kept.values())
    ends = [*(kills or [stopped["host_ns"]]), first + int(scenario["record_s"] * 1e9)]
    end_ns = min(truth["world0_host_ns"] + int(scenario["seconds"] * 1e9), *ends)
    quickest = min(host_ns - 100 * ticks for rows in kept.values() for _, ticks, host_ns in rows)
    begin, stop = max(ticks[0] for ticks in streams), (end_ns - quickest) // 100
    return min(share_covered(ticks, begin, max(stop, ticks[-1])) for ticks in streams)


def verified(folder: Path) -> dict:
    """Ask the command for the ledger of a scenario's recording."""
    asked = [str(COMMAND), "verify", str(folder / "data" / "take"), "--json"]
    return json.loads(subprocess.run(asked, capture_output=True, text=True, check=False).stdout)


def main(kept: Path) -> int:
    bad = 0
    for folder in sorted(path for path in kept.iterdir() if (path / "scenario.json").exists()):
        sent, stored, named, wrong = check(folder, verified(folder))
        bad += bool(wrong)
        print(f"{folder.name:22}{sent:>8}{stored:>8}{named:>6}  {'; '.join(wrong)}".rstrip())
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
