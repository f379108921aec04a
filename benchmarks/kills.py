"""Kill processes of the recorder at random, many times a recording, and account for every packet.

    python -P benchmarks/kills.py [--kills 1000] [--seed 1] [--keep kills]

Producers, drainers, queue server and mover are killed while recording from relative paths; two recordings of three
end with SIGKILL for the recorder, or for it and all that it has started, and `kitchensync recover` from another
folder, which is killed too in half of them. All processes that die at one moment count as one kill. Recordings that
are fine are removed; the total is kept in KEEP/total.json, and the same command goes on there.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from capture.rehearsal.kills import Total, load, run

SECONDS_A_KILL = 3.5


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
    return 1 if is_bad(total) else 0


def is_bad(total: Total) -> bool:
    """Tell whether anything was not as it must be."""
    return bool(total.unexplained or total.duplicates or total.unreadable_files or total.wrong_causes)


if __name__ == "__main__":
    sys.exit(main())
