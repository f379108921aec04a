"""Guessing: passwords for the admin from many addresses, while the admin signs in from another."""

from __future__ import annotations

import asyncio
import json
import time

from registry import Aim, Seen, attack
from sockets import at_once, connected, head, status_of

SIGN_IN = "/api/v1/desk/sign-in"


async def sign_in(aim: Aim, source: str, name: str, password: str) -> str:
    """Try a password from an address; return the status."""
    body = json.dumps({"pseudonym": name, "password": password}).encode()
    async with connected(aim, source) as (reader, writer):
        writer.write(head("POST", SIGN_IN, len(body)) + body)
        return await status_of(reader)


@attack(
    "wrong passwords for the admin from 20 addresses, 60 at a time; the admin signs in from another",
    least_s=8,
)
async def lock_outs(aim: Aim) -> Seen:
    seen, until = Seen(), time.monotonic() + aim.seconds
    name, password = aim.knows["admin"], aim.knows["password"]

    async def guess(number: int) -> None:
        seen.answer(await sign_in(aim, f"127.2.0.{number % 20 + 1}", name, f"guess number {number}"))

    async def admin() -> None:
        while time.monotonic() < until:
            await asyncio.sleep(2)
            statuses = [await sign_in(aim, "127.2.1.1", name, password) for _ in range(1)]
            while statuses[-1] == "429" and len(statuses) < 5:  # "wait 1 s": others are being checked
                await asyncio.sleep(1)
                statuses.append(await sign_in(aim, "127.2.1.1", name, password))
            if statuses[-1] != "200":
                seen.wrong.append(f"the admin was answered {statuses}")

    await asyncio.gather(at_once(60, until, guess), admin())
    if seen.answered.get("200"):
        seen.wrong.append("a guess was right")
    return seen
