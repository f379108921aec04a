"""Attack a real `kitchensync app` on loopback, a kind at a time, while others work with it; print a table.

    python -P benchmarks/attack [KIND ...] [--seconds 10] [--alone] [--list]

Others are a tablet that is signed in and two visitors without a session, at an address of their own; beside it all a
recording of the virtual kitchen goes on, unless `--alone`. Exit code 1 if one of them waited over 1 s or was refused,
if the app used 300 MiB more or ended, if half of a request was kept over 60 s, if a kind saw something wrong, or if
the recording is not PASS with every packet stored that was sent.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import devices
import floods
import lock_outs
import psutil
from beside import FrameSamples, recording
from registry import KINDS, Aim, Attack, Seen, as_json, attack
from target import PASSWORD, Watch, app, let_in, memory_of

FILES = (floods, lock_outs, devices)
MOST_BYTES, MOST_WAIT_S, MOST_HALF_S = 300 << 20, 1.0, 60.0
ROW = "{:<20} {:>7} {:>9} {:>9} {:>9} {:>9} {:>8}  {}"


@attack("nothing, to compare with")
async def nothing(aim: Aim) -> Seen:
    await asyncio.sleep(aim.seconds)
    return Seen()


def run(kind: Attack, seconds: float, control: str) -> bool:
    """Attack a new app in one way; print its row; tell whether everything held."""
    with tempfile.TemporaryDirectory(prefix="attack-") as folder, app(Path(folder)) as (url, invite, pid):
        admin, tablet, _ = let_in(url, invite)
        before = memory_of(psutil.Process(pid))
        place = urlsplit(url)
        aim = {"host": place.hostname, "port": place.port, "seconds": max(seconds, kind.least_s)}
        aim["knows"] = {"admin": admin, "password": PASSWORD, "control": control}
        watch, began = Watch(url, pid, tablet), time.monotonic()
        with watch.watching():
            command = [sys.executable, "-P", str(Path(__file__).parent), kind.name, "--aim", json.dumps(aim)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=600)
        lives = psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return judged(kind, watch, json.loads(done.stdout), before, time.monotonic() - began, lives)


def stayed(beside: FrameSamples) -> bool:
    """Print the row of the recording; tell whether nothing of it was lost."""
    account = beside.account
    assert account is not None
    whole = account.verdict == "PASS" and account.is_fine and account.produced == account.stored > 0
    said = f"{account.verdict}, {account.produced:,} packets sent, {account.stored:,} stored"
    against = [] if whole else [account.notes, *beside.reasons]
    print("; ".join([f"{'recording beside':<20} {said}", *filter(None, against)]), flush=True)
    return whole


def judged(kind: Attack, watch: Watch, seen: dict[str, Any], before: int, took_s: float, lives: bool) -> bool:
    """Print a row; tell whether everything held."""
    waits = sorted(watch.waits_s) or [float("inf")]
    more = max(0, watch.most_bytes - before)
    wrong = list(seen["wrong"]) + [f"{len(watch.failed)} refused: {one}" for one in watch.failed[:1]]
    wrong += ["the app ended"] * (not lives) + ["memory"] * (more >= MOST_BYTES)
    wrong += ["others waited"] * (waits[-1] > MOST_WAIT_S) + ["half kept"] * (
        seen["longest_half_s"] > MOST_HALF_S
    )
    half = f"{seen['longest_half_s']:.0f} s" if seen["longest_half_s"] else "-"
    p99 = waits[int(len(waits) * 0.99) - 1]
    cells = (kind.name, f"{took_s:.0f} s", seen["tried"], f"{more / 2**20:.0f} MiB", f"{p99 * 1e3:.0f} ms")
    answers = " ".join(f"{status}:{count}" for status, count in sorted(seen["answered"].items()))
    print(
        ROW.format(*cells, f"{waits[-1] * 1e3:.0f} ms", half, f"{'; '.join(wrong) or 'held'}  {answers}"),
        flush=True,
    )
    return not wrong


def main() -> int:
    """Run the kinds that were asked for, or all."""
    parser = argparse.ArgumentParser(prog="benchmarks/attack", description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="which kinds; all without any")
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="length of each attack, at least what it needs"
    )
    parser.add_argument("--alone", action="store_true", help="without a recording beside it")
    parser.add_argument("--list", action="store_true", help="say which kinds there are")
    parser.add_argument("--aim", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if unknown := sorted(set(given.kinds) - KINDS.keys()):
        parser.error(f"no kind {', '.join(unknown)}; there are {', '.join(KINDS)}")
    if given.list:
        print("\n".join(f"{kind.name:<20} {kind.what}" for kind in KINDS.values()))
        return 0
    if given.aim:  # the attacker: a process of its own, so that it slows nobody down who measures
        print(json.dumps(as_json(asyncio.run(KINDS[given.kinds[0]].act(Aim(**json.loads(given.aim)))))))
        return 0
    print(
        ROW.format("kind", "time", "tries", "memory +", "wait p99", "longest", "half", "answers"), flush=True
    )
    with contextlib.ExitStack() as opened:
        beside = None if given.alone else opened.enter_context(recording())
        control = str(beside.endpoint) if beside else ""
        names = given.kinds or [name for name in KINDS if control or name != "hostile-frames"]
        held = [run(KINDS[name], given.seconds, control) for name in names]
    if beside is not None:
        held.append(stayed(beside))
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
