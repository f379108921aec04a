"""Bits flipped in a recording of the virtual kitchen: `verify` finds each and says in which file, stream and block.

One bit at a time, in a file of every kind in turn. `make flips` flips 1,000 (KITCHENSYNC_FLIPS).
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest
from flips import block_at, flip, stream_of
from processes import kitchensync

from kitchensync.storage.events import EventLog
from kitchensync.storage.move.archive import archive_stream
from kitchensync.storage.verify import verify

FLIPS = int(os.environ.get("KITCHENSYNC_FLIPS", "12"))
pytestmark = [pytest.mark.system, pytest.mark.timeout(180 + 4 * FLIPS)]

KINDS = {
    "chunk": "hololens/[!cm]*/*.h5",
    "archive": "hololens/microphone/*.h5",
    "ledger": "ledger/*/*.h5",
    "clock": "clock/*/*.h5",
    "constants": "hololens/calibration/*",
    "film": "gopro/*.MP4",
    "media list": "gopro/media.json",
    "manifest": "recording.json",
    "events": "events/*.jsonl",
    "copies list": "copies.jsonl",
}
"""Kinds of files and where they lie; each is flipped as often as the others, however small it is."""


def make(kitchen, tmp_path: Path) -> Path:
    """Record some seconds with a camera and touches, copy it to a store, archive one stream."""
    place, data = kitchen(seconds=60), tmp_path / "data"
    store = tmp_path / "nas"
    store.mkdir()
    take = ["record", "take", "--data", data, "--hololens", place.host, "--gopro", place.camera]
    kitchensync(*take, "--seconds", 4, "--chunk-seconds", 1)  # a busy computer may make its verdict worse
    path = data / "take"
    archive_stream(path, "hololens/microphone")
    for number in range(3):
        EventLog(path, "tablet").append("done", host_ns=number, uncertainty_ns=1, body={"step": str(number)})
    done = kitchensync("move", path, "--to", store, "--keep")
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.slow
def test_every_flipped_bit_is_found_and_located(kitchen, runtime, tmp_path):
    path = make(kitchen, tmp_path)
    before = verify(path)
    assert before["corrupt"] == []
    files = {kind: sorted(path.glob(pattern)) for kind, pattern in KINDS.items()}
    assert [kind for kind, found in files.items() if not found] == []
    chance, missed, flipped = random.Random(FLIPS), [], Counter()
    for number in range(FLIPS):
        kind = list(KINDS)[number % len(KINDS)]
        file = chance.choice(files[kind])
        place, bit = chance.randrange(file.stat().st_size), chance.randrange(8)
        if wrong := wrongly_located(path, file, place, bit):
            missed.append(f"{kind}: byte {place}, bit {bit} of {file.relative_to(path)}: {wrong}")
        flipped[kind] += 1
    print(f"{FLIPS - len(missed)} of {FLIPS} flipped bits found and located: {dict(flipped)}")
    assert missed == []
    after = verify(path)
    assert after["corrupt"] == []
    assert after["status"] == before["status"]


def wrongly_located(path: Path, file: Path, place: int, bit: int) -> str:
    """Flip a bit, verify, flip it back; return what is wrong with the answer, "" where it is right."""
    relative, block = file.relative_to(path).as_posix(), block_at(file, place)
    flip(file, place, bit)
    try:
        found = verify(path)
    finally:
        flip(file, place, bit)
    told = [(entry["file"], entry["stream"], entry["block"]) for entry in found["corrupt"]]
    if found["status"] != "FAIL" or not told:
        return f"not found ({found['status']})"
    if {name for name, _, _ in told} != {relative}:
        return f"others are blamed: {told}"
    stream = "recording" if relative == "recording.json" else stream_of(relative)
    if {name for _, name, _ in told} != {stream}:
        return f"another stream is named: {told}"
    if block is not None and block not in [name for _, _, name in told]:
        return f"it lies in {block}, and named is {told}"
    return ""
