"""How cost grows with the number of rigs: virtual headsets, each recorded by a `kitchensync record` of its own.

    python -P benchmarks/packet_path/rigs.py [--rigs 1 2 4 8] [--seconds 20] [--only TEXT]

All at real time and at once, the headsets on the same processors. Prints one line of JSON for each number of rigs:
CPU ms a rig-second, the most memory of each kind of process added up, what was lost or late, how busy it was.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from cases import cases
from watch import children_cpu_s
from whole import run


def main() -> int:
    """Record with more and more rigs; return 1 when a packet is lost."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rigs", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--only", default="encoded rig at 1x")
    options = parser.parse_args()
    case = replace(next(one for one in cases() if options.only in one.name), seconds=options.seconds)
    lost = 0
    for count in options.rigs:
        begin_s, before_s = time.monotonic(), children_cpu_s()
        with ThreadPoolExecutor(count) as pool:
            figures = list(pool.map(run, [case] * count))
        busy = (children_cpu_s() - before_s) / (time.monotonic() - begin_s) / (os.cpu_count() or 1)
        lost += sum(one.lost for one in figures)
        row = {
            "rigs": count,
            "cpu_ms_per_rig_s": round(sum(one.as_dict()["cpu_ms_per_rig_s"] for one in figures) / count, 1),
            "memory_mb": round(sum(sum(one.memory_mb.values()) for one in figures)),
            "lost": sum(one.lost for one in figures),
            "most_behind_ms": round(max(one.most_behind_ms for one in figures)),
            "drained_s": round(max(one.drained_s for one in figures), 1),
            "busy_percent": round(100 * busy),
        }
        print(json.dumps(row), flush=True)
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())
