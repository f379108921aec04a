"""A packet whose bytes were changed on the disk is given to nobody: it is left out and named."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from numbered_recording import write_numbered

import kitchensync as ks
from kitchensync.reader.timed_stream import Unreadable
from kitchensync.storage.chunks.chunk_reader import DAMAGED, Chunk
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.reading.inertial import read_samples
from kitchensync.storage.reading.records import read_records
from kitchensync.storage.recording import Recording
from kitchensync.storage.verify import verify

pytestmark = pytest.mark.slow
ROW = 7


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("whole")
    write_numbered(root)
    return root / "take1"


@pytest.fixture
def take(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "take1"))


def flip(recording: Path, stream: str, row: int = ROW) -> None:
    """Change the lowest bit of a byte in the middle of a packet."""
    path = min((recording / stream).glob("*.h5"))
    with Chunk(path) as chunk:
        payload = chunk.payload(row)
    content = bytearray(path.read_bytes())
    content[content.index(payload) + len(payload) // 2] ^= 1
    path.write_bytes(content)


def test_records_are_read_without_it(whole: Path, take: Path) -> None:
    flip(take, "hololens/spatial_input")
    with Recording(whole) as before, Recording(take) as after:
        stream = after["hololens/spatial_input"]
        found, wanted = read_records(stream), read_records(before["hololens/spatial_input"])
        assert stream.bad == {ROW: DAMAGED}
        assert found.row.tolist() == [row for row in wanted.row if row != ROW]
        assert found.values.tobytes() == np.delete(wanted.values, ROW).tobytes()
        assert stream.payload(ROW) == b""
        assert stream.payload(ROW + 1) == before["hololens/spatial_input"].payload(ROW + 1)


def test_motion_is_read_without_it(whole: Path, take: Path) -> None:
    flip(take, "hololens/gyroscope")
    with Recording(whole) as before, Recording(take) as after:
        found, wanted = read_samples(after["hololens/gyroscope"]), read_samples(before["hololens/gyroscope"])
        assert found.bad == {ROW: DAMAGED}
        assert found.xyz.tobytes() == wanted.xyz[wanted.row != ROW].tobytes()


def test_a_picture_is_not_shown_and_says_why(take: Path) -> None:
    flip(take, "hololens/pv")
    flip(take, "hololens/depth_ahat", 2)
    with ks.open(take) as rec:
        for stream, row in ((rec.pv, ROW), (rec.depth, 2)):
            with pytest.raises(Unreadable, match="does not match its checksum"):
                stream[row]
            assert stream[row - 1].size


def test_verify_counts_it_as_missing_and_advises_against_it(whole: Path, take: Path) -> None:
    name = "hololens/pv"
    with edit_manifest(take) as manifest, Recording(whole) as recording:
        ticks, count = recording[name].index["device_ticks"], len(recording[name])
        manifest["streams"][name]["nominal_hz"] = (count - 1) / (int(ticks[-1] - ticks[0]) / 1e7)
    before = verify(take)
    for row in range(5, 5 + count // 3):
        flip(take, name, row)
    after = verify(take)
    assert (before["streams"][name]["coverage"] > 0.99, after["status"]) == (True, "FAIL")
    assert after["streams"][name]["coverage"] < 0.85
    assert [one for one in after["good_for"] if one.startswith("pv ")], after["good_for"]
    assert not [one for one in after["good_for"] if "use it for" in one]
