"""A small finished recording whose content is known, for movers and stores."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sealed_chunks import sealed

from kitchensync.storage.chunks.chunk_writer import Packet
from kitchensync.storage.manifest import write_json
from kitchensync.storage.reading.device_constants import ConstantTable, calibration_files, write_calibration
from kitchensync.storage.verify import verify

STREAM = "hololens/pv"
POSE = np.eye(4, dtype=np.float32).tobytes()
FILM_BYTES = 9 << 20


def film_entry(folder: Path) -> dict[str, Any]:
    """Write a camera file of some megabytes; return its entry in media.json."""
    content = random.Random(5).randbytes(FILM_BYTES)
    (folder / "GX010001.MP4").write_bytes(content)
    return {"file": "GX010001.MP4", "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


@pytest.fixture
def finished(made_once: Path, tmp_path) -> Path:
    """A closed recording: one stream in three chunks, its constants, ledger, a camera file, events."""
    return shutil.copytree(made_once, tmp_path / "data" / "take")


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording that `finished` is a copy of."""
    path = tmp_path_factory.mktemp("finished") / "take"
    files: dict[str, Any] = {}

    for number in range(3):
        rows = range(20 * number, 20 * number + 20)
        packets = [Packet(n, 1, 10 * n, n, 1, b"packet %d" % n * 50, POSE) for n in rows]
        files |= sealed(path, STREAM, number + 1, packets)
    end = {"stream": STREAM, "note": "end", "reason": "ended_by_device", "received": 60}
    files |= sealed(path, "ledger/hololens", 1, [Packet(0, 1, 0, 0, 1, json.dumps(end).encode(), b"")])
    (path / "gopro").mkdir()
    write_json(path / "gopro" / "media.json", {"files": [film_entry(path / "gopro")]})
    table = ConstantTable("intrinsics", np.arange(4.0), "px", "camera", "focal lengths and principal point")
    write_calibration(path / "hololens" / "calibration" / "pv.h5", [table], {"model": "pinhole"})
    files |= calibration_files(path)
    (path / "events").mkdir()
    (path / "events" / "tablet.jsonl").write_bytes(b"")
    manifest = {"schema": "recording/1", "recording": "take", "state": "complete", "files": files}
    manifest |= {"streams": {STREAM: {}}, "devices": {"gopro": {"kind": "gopro"}}, "stopped": {"utc_ns": 0}}
    manifest |= {"consent": "form-1", "consent_scopes": ["release_raw"]}
    write_json(path / "recording.json", manifest)
    assert verify(path)["status"] == "PASS"
    return path
