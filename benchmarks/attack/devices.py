"""Devices and requests that mean harm to a recorder."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hostile
from registry import Aim, Seen, attack


async def _met(aim: Aim, what: str, seed: int = 0) -> Seen:
    seen = Seen()
    with tempfile.TemporaryDirectory(prefix="ks") as place:
        folder = Path(place)
        await asyncio.to_thread(hostile.attack, what, folder, seed, Path(aim.knows["control"]))
        for ended in _ends_in(folder):
            seen.answer(ended)
        seen.wrong += hostile.wrong_in(folder)
    return seen


def _ends_in(folder: Path) -> Iterator[str]:
    """Yield how each kind ended in a scenario that was played: in a word of ours, or refused in words."""
    for facts in json.loads((folder / hostile.SEEN).read_text()).values():
        if "limit_bytes" not in facts or facts["ended"].isupper():
            yield facts["ended"] if facts["ended"].isalpha() else "refused"


@attack("a second recorder meets headsets that mean harm, eighteen kinds on six streams")
async def hostile_headsets(aim: Aim) -> Seen:
    seen = Seen()
    for turn in range(hostile.ROUNDS):
        met = await _met(aim, "headset", turn)
        seen.tried += met.tried
        seen.wrong += met.wrong
        for ended, count in met.answered.items():
            seen.answered[ended] = seen.answered.get(ended, 0) + count
    return seen


@attack("headsets that mean harm are asked on port 3809 and for the constants of their sensors")
async def hostile_remotes(aim: Aim) -> Seen:
    return await _met(aim, "remote")


@attack("cameras that mean harm are asked for their state and a file")
async def hostile_cameras(aim: Aim) -> Seen:
    return await _met(aim, "camera")


@attack("frames without a right signature come to the recorder's control socket")
async def hostile_frames(aim: Aim) -> Seen:
    return await _met(aim, "control")
