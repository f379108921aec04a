"""Poses of two starts of the app lie in two world frames: nothing is interpolated from one to the other."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
from small_recordings import SECONDS, seal_stream, write_manifest

from kitchensync.sensors.hololens.streams import spatial_input
from kitchensync.storage.chunks.layout import INDEX
from kitchensync.storage.ledger import ConnectedNote, NewWorldFrameNote
from kitchensync.storage.reading.worlds import first_rows, frames_of
from kitchensync.storage.recording import open_recording
from kitchensync.sync.synchronize import synchronize

RESTART_ROW, STEP, FAR_M = 300, 333_333, 40.0


def write_restart(recording):
    """A head pose whose app starts anew without a visible gap, and a camera to be the master."""
    count = int(SECONDS * 30)
    rows = []
    for k in range(count):
        record = np.zeros((), spatial_input.DTYPE)
        record["valid"] = spatial_input.HEAD
        record["head_position"] = (k * 0.01 + (FAR_M if k >= RESTART_ROW else 0.0), 1.6, 0.0)
        record["head_up"], record["head_forward"] = (0, 1, 0), (0, 0, -1)
        rows.append((10**12 + k * STEP, spatial_input.encode(record)))
    connection = [1 if k < RESTART_ROW else 2 for k in range(count)]
    seal_stream(recording, "hololens/spatial_input", rows, connection=connection)
    seal_stream(recording, "hololens/pv", [(10**12 + k * STEP + 100_000, b"picture") for k in range(count)])
    note = {"note": "new_world_frame", "stream": "hololens/spatial_input", "host_ns": 1, "connection": 2}
    told = json.dumps(note | {"app_start": 1, "utc_offset_ticks": 5}).encode()
    seal_stream(recording, "ledger/hololens", [(1, told), (2, told)])
    write_manifest(recording, {"hololens/spatial_input": {}, "hololens/pv": {}}, {"hololens": "hololens"})


def test_the_ledger_tells_of_a_new_world(tmp_path):
    write_restart(tmp_path / "take")
    synchronize(tmp_path / "take")
    table = pq.read_table(tmp_path / "take" / "sync" / "poses.parquet").to_pydict()
    world, x_m = np.array(table["head_world"]), np.array(table["head_x_m"])
    assert (world[: RESTART_ROW - 1] == 0).all()
    assert world[RESTART_ROW - 1] == -1
    assert np.isnan(x_m[RESTART_ROW - 1])
    assert (world[RESTART_ROW:-1] == 1).all()
    assert x_m[: RESTART_ROW - 1].max() < FAR_M <= x_m[RESTART_ROW:-1].min()
    with open_recording(tmp_path / "take") as recording:
        assert "head" not in recording.at(RESTART_ROW - 1).poses
        assert [recording.at(k).worlds.get("head") for k in (RESTART_ROW - 2, RESTART_ROW)] == [0, 1]


def test_packets_are_counted_on_by_a_new_run_of_the_producer_and_connections_are_not():
    index = np.zeros(9, INDEX)
    index["seq"] = np.arange(9)
    index["connection"] = [1, 1, 1, 2, 2, 2, 1, 1, 1]  # the producer died after packet 5
    note = NewWorldFrameNote(connection=2, next_seq=3, app_start=1)
    assert frames_of(index, [ConnectedNote(connection=2, next_seq=3), note]).tolist() == [0] * 3 + [1] * 6
    assert first_rows(frames_of(index, [note])) == [3]
    assert first_rows(frames_of(index, [])) == []


def test_a_damaged_ledger_is_said(tmp_path):
    write_restart(tmp_path / "take")
    chunk = next((tmp_path / "take" / "ledger" / "hololens").glob("*.h5"))
    chunk.write_bytes(chunk.read_bytes()[:-40])
    answer = synchronize(tmp_path / "take")
    assert "ledger is damaged" in answer["warnings"][0]
    about = pq.read_schema(tmp_path / "take" / "sync" / "poses.parquet").metadata[b"kitchensync"]
    assert "damaged" in json.loads(about)["world_frames"]
