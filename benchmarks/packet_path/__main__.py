"""The path of a packet, TCP to sealed and checksummed HDF5, held to its budgets, beside what else there is.

    python -P benchmarks/packet_path [--rounds 3] [--only TEXT]... [--scale 1] [--without-parts] [--json FILE]

`kitchensync record` takes the streams of a virtual headset that sends as fast as it can, or at a multiple of real
time. CPU is counted from outside, per process, from the first arrival to the last sealed file: the simulator and the
start of the interpreters are not in it. Medians of the rounds; `lost` and the like are the worst of them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import beside
from cases import MOST_BEHIND_MS, MOST_DRAIN_S, MOST_QUEUE_MB, Case, cases
from hdf5_stage import ratios_of_stage
from whole import run

Facts = dict[str, Any]
MIDDLE = ("packets_per_s", "mb_per_s", "cpu_ms_per_rig_s", "cpu_ms_per_mb", "cpu_us_per_packet", "wall_s")
WORST = ("lost", "named_losses", "dropped_by_backpressure", "most_behind_ms", "drained_s")
PART_SECONDS = {"raw-depth rig": 6, "encoded rig": 40, "small packets": 600}
"""How much of a schedule the parts alone get, which hold it in memory."""


def summary(case: Case, rounds: list[Facts]) -> Facts:
    """Return the medians of a case's rounds, the worst of its losses, and what it misses."""
    facts: Facts = {"case": case.name, "rounds": rounds}
    facts |= {name: statistics.median(one[name] for one in rounds) for name in MIDDLE}
    facts |= {name: max(one[name] for one in rounds) for name in WORST}
    kinds = sorted({kind for one in rounds for kind in one["cpu_s"]})
    facts["cpu_ms_by_process"] = {
        kind: 1e3 * statistics.median(one["cpu_s"].get(kind, 0.0) for one in rounds) / case.seconds
        for kind in kinds
    }
    facts["queue_mb"] = max(one["memory_mb"].get("server", 0.0) for one in rounds)
    facts["missed"] = missed(case, facts)
    return facts


def missed(case: Case, facts: Facts) -> list[str]:
    """Name the budgets that a case does not keep."""
    limits = [
        ("cpu_ms_per_rig_s", case.most_ms_per_rig_s, "ms CPU per rig-second"),
        ("cpu_ms_per_mb", case.most_ms_per_mb, "ms CPU per MB"),
    ]
    if case.must_be_lossless:
        limits += [
            ("lost", 0, "packets of the schedule missing"),
            ("dropped_by_backpressure", 0, "dropped at the source"),
            ("most_behind_ms", MOST_BEHIND_MS, "ms behind the schedule"),
            ("queue_mb", MOST_QUEUE_MB, "MB in the queue"),
            ("drained_s", MOST_DRAIN_S, "s to drain"),
        ]
    found = [
        f"{facts[name]:.4g} {what}, at most {most:g}"
        for name, most, what in limits
        if most is not None and facts[name] > most
    ]
    if case.least_packets_per_s is not None and facts["packets_per_s"] < case.least_packets_per_s:
        found.append(f"{facts['packets_per_s']:.0f} packets/s, at least {case.least_packets_per_s:g}")
    return found


def row(facts: Facts) -> str:
    """Return one row of the table."""
    parts = " ".join(f"{kind} {ms:.1f}" for kind, ms in facts["cpu_ms_by_process"].items())
    return (
        f"| {facts['case']} | {facts['packets_per_s']:.0f} | {facts['mb_per_s']:.1f} "
        f"| {facts['cpu_ms_per_rig_s']:.1f} | {parts} | {facts['cpu_ms_per_mb']:.2f} "
        f"| {facts['cpu_us_per_packet']:.0f} | {facts['lost']} | {facts['dropped_by_backpressure']} "
        f"| {facts['most_behind_ms']:.0f} | {facts['queue_mb']:.0f} | {facts['drained_s']:.2f} "
        f"| {'; '.join(facts['missed']) or 'ok'} |"
    )


HEAD = (
    "case", "packets/s", "MB/s", "CPU ms per rig-s", "by process", "ms/MB", "us/packet", "lost", "dropped",
    "behind ms", "queue MB", "drained s", "verdict",
)  # fmt: skip


LEAST_OF_PLAIN = {"blob 64 KB": 0.5, "blob 512 KB": 0.7, "frames 1 MB, not compressed": 0.85}
"""The HDF5 stage alone (no checksums, hash and sync) against appending to a plain file, MB/s."""


def run_stage(rounds: int) -> list[Facts]:
    """Measure the HDF5 stage beside a plain file; the ratio is the median of those within a round."""
    with tempfile.TemporaryDirectory(prefix="ks") as folder:
        measured = ratios_of_stage(Path(folder), 64, rounds)
    stages = []
    for kind, least in LEAST_OF_PLAIN.items():
        ratio = statistics.median(measured[kind])
        too_slow = [f"{ratio:.2f} of a plain file, at least {least:g}"] if ratio < least else []
        stages.append({"stage": kind, "of_plain_file": ratio, "least": least, "missed": too_slow})
        print(f"HDF5 stage, {kind}: {ratio:.2f} of a plain file (at least {least:g})", flush=True)
    return stages


def run_parts(case: Case, rounds: int) -> list[Facts]:
    """Measure what a case is compared with; medians of the rounds."""
    seconds = next(s for text, s in PART_SECONDS.items() if case.name.startswith(text))
    case = replace(case, seconds=seconds)
    kept = beside.packets_of(case)
    count = sum(map(len, kept.values()))
    found: dict[str, list[Facts]] = {}
    for _ in range(rounds):
        parts = [beside.bare_receive(case, count), beside.queue_alone(kept), beside.plain_files(kept)]
        mcap = beside.mcap_file(kept)
        for part in [*parts, *([mcap] if mcap else [])]:
            found.setdefault(part.name, []).append(part.as_dict())
    names = ("packets_per_s", "mb_per_s", "cpu_ms_per_mb", "cpu_us_per_packet")
    return [
        {"part": part, "on": case.name, **{n: statistics.median(one[n] for one in some) for n in names}}
        for part, some in found.items()
    ]


def show_parts(parts: list[Facts]) -> None:
    """Print the rows of the parts."""
    for part in parts:
        print(
            f"| {part['on']} | {part['part']} | {part['packets_per_s']:.0f} | {part['mb_per_s']:.1f} "
            f"| {part['cpu_ms_per_mb']:.2f} | {part['cpu_us_per_packet']:.1f} |",
            flush=True,
        )


def main() -> int:
    """Measure, print, and exit 1 when a budget is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="Cases that contain it.")
    parser.add_argument("--scale", type=float, default=1.0, help="Times the usual length.")
    parser.add_argument("--without-parts", action="store_true")
    parser.add_argument("--json", type=Path, help="Write everything here.")
    options = parser.parse_args()
    chosen = [
        replace(case, seconds=case.seconds * options.scale)
        for case in cases()
        if not options.only or any(text in case.name for text in options.only)
    ]
    print(beside.machine())
    print("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|", flush=True)
    results = []
    for case in chosen:
        results.append(summary(case, [run(case).as_dict() for _ in range(options.rounds)]))
        print(row(results[-1]), flush=True)
    parts: list[Facts] = []
    if not options.without_parts:
        print("\n| on | part alone | packets/s | MB/s | ms/MB | us/packet |\n" + "|---" * 6 + "|")
        for case in chosen:
            if case.name.endswith("unpaced") and case.name.startswith(tuple(PART_SECONDS)):
                parts += run_parts(case, options.rounds)
                show_parts(parts[-4:])
    stages = [] if options.without_parts else run_stage(max(options.rounds, 3))
    if options.json:
        facts = {"machine": beside.machine(), "cases": results, "parts": parts, "stages": stages}
        options.json.write_text(json.dumps(facts, indent=1))
    return 1 if any(result["missed"] for result in [*results, *stages]) else 0


if __name__ == "__main__":
    sys.exit(main())
