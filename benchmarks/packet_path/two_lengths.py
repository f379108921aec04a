"""What recording costs: each second of it, and once for its start and its end, from recordings of two lengths.

    python -P benchmarks/packet_path/two_lengths.py [--seconds 20 80] [--rounds 3] [--only TEXT] [--json FILE]

`kitchensync record` takes the streams of a virtual headset at real time. CPU is that of the recorder and of every
process below it, from exec to exit, as the kernel counts it; how it is spread over the processes and over start and
end is seen by looking every 20 ms, and so is how often each is woken. Medians of the rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import beside
from cases import Case, cases
from watch import children_cpu_s
from whole import free_host, record_once, recorded_times, simulator, write_rig

Facts = dict[str, Any]
PHASES = ("start", "recording", "end")


def once(case: Case) -> Facts:
    """Record a case once; return CPU seconds in all, by process and phase, and how often processes were woken."""
    host = free_host()
    with tempfile.TemporaryDirectory(prefix="ks") as name:
        folder = Path(name)
        write_rig(folder / "rig.toml", case, host)
        kitchen = simulator(case, host, folder / "sim")
        try:
            begin_ns, before_s = time.monotonic_ns(), children_cpu_s()
            answer, watch = record_once(case, folder)
            cpu_s = children_cpu_s() - before_s
        finally:
            kitchen.kill()
            kitchen.wait()
        first_ns, last_ns, _ = recorded_times(folder / "data" / "take", case.streams)
        moments = (begin_ns, first_ns, last_ns, time.monotonic_ns())
        spans = dict(zip(PHASES, pairwise(moments), strict=True))
        stored = [answer["streams"][f"hololens/{short}"]["stored"] for short in case.streams]
        return {
            "cpu_s": cpu_s,
            "packets": sum(stored),
            "until_first_packet_s": (first_ns - begin_ns) / 1e9,
            "after_last_packet_s": (watch.ended_ns - last_ns) / 1e9,
            "cpu_by_phase_s": {phase: watch.cpu_s(*span) for phase, span in spans.items()},
            "woken": watch.woken(),
            "status": answer["status"],
        }


def compared(short: list[Facts], long: list[Facts], seconds: tuple[float, float]) -> Facts:
    """Return what a second costs, and what start and end cost together, of rounds of two lengths."""
    a_second = [
        (b["cpu_s"] - a["cpu_s"]) / (seconds[1] - seconds[0]) for a, b in zip(short, long, strict=True)
    ]
    once_s = [a["cpu_s"] - each * seconds[0] for a, each in zip(short, a_second, strict=True)]
    kinds = sorted({kind for one in short for spread in one["cpu_by_phase_s"].values() for kind in spread})

    def median(name: str) -> float:
        return statistics.median(one[name] for one in short)

    def spread(phase: str, kind: str) -> float:
        return statistics.median(one["cpu_by_phase_s"][phase].get(kind, 0.0) for one in short)

    woken = {
        kind: statistics.median(one["woken"].get(kind, 0) / one["packets"] for one in long) for kind in kinds
    }
    return {
        "cpu_ms_a_second": 1e3 * statistics.median(a_second),
        "cpu_s_start_and_end": statistics.median(once_s),
        "until_first_packet_s": median("until_first_packet_s"),
        "after_last_packet_s": median("after_last_packet_s"),
        "cpu_by_phase_s": {kind: {phase: spread(phase, kind) for phase in PHASES} for kind in kinds},
        "woken_a_packet": woken,
    }


def show(case: Case, facts: Facts, seconds: float) -> None:
    """Print what was found."""
    print(
        f"\n{case.name}: {facts['cpu_ms_a_second']:.0f} ms of CPU a recorded second,"
        f" {facts['cpu_s_start_and_end']:.2f} s for start and end;"
        f" first packet {facts['until_first_packet_s']:.2f} s after exec,"
        f" end {facts['after_last_packet_s']:.2f} s after the last packet"
    )
    print(
        "\n| process | CPU before the first packet, s | while packets come, ms/s | after, s | woken a packet |"
    )
    print("|---" * 5 + "|")
    for kind, spread in facts["cpu_by_phase_s"].items():
        print(
            f"| {kind} | {spread['start']:.2f} | {1e3 * spread['recording'] / seconds:.1f} | {spread['end']:.2f}"
            f" | {facts['woken_a_packet'][kind]:.2f} |"
        )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, nargs=2, default=(20.0, 80.0))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--only", default="encoded rig at 1x", metavar="TEXT", help="The case that contains it."
    )
    parser.add_argument("--json", type=Path, help="Write everything here.")
    options = parser.parse_args()
    case = next(one for one in cases() if options.only in one.name)
    lengths = tuple(options.seconds)
    print(beside.machine())
    rounds: list[list[Facts]] = [[], []]
    for _ in range(options.rounds):
        for found, seconds in zip(rounds, lengths, strict=True):
            found.append(once(replace(case, seconds=seconds)))
    facts = compared(*rounds, lengths)
    show(case, facts, lengths[0])
    if options.json:
        options.json.write_text(
            json.dumps({"machine": beside.machine(), "rounds": rounds, **facts}, indent=1)
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
