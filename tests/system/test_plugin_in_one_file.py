"""A sensor in one file: it records, verifies, decodes, stands in `info` and is viewed."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import h5py
import numpy as np
import pytest
from processes import kitchensync

from storage.recording import open_recording

pytestmark = pytest.mark.system

ODD = 7
SCALE = f'''
import time

import numpy as np

from sensors.host_clock import host_ns
from sensors.plugin import SensorPacket, SensorStream

RECORD = np.dtype([("grams", "<f4"), ("is_still", "u1")])


def check(payload, form):
    if np.isnan(np.frombuffer(payload, RECORD)["grams"]).any():
        raise ValueError("no weight")


class Scale:
    """A kitchen scale: two weights a packet, one packet with nonsense."""

    def __init__(self, settings):
        self.count = settings["count"]

    def streams(self):
        return [SensorStream("weight", 50.0, format={{"codec": "weights", "unit": "g"}}, record=RECORD, check=check)]

    def packets(self, stream):
        for number in range(self.count):
            grams = float("nan") if number == {ODD} else number / 2
            payload = np.array([(grams, 0), (grams + 0.25, 1)], RECORD).tobytes()
            yield SensorPacket(host_ns() // 100, payload)
            time.sleep(0.02)

    def close(self):
        pass
'''
COUNT = 100


def expected(number: int) -> np.ndarray:
    return np.array([number / 2, number / 2 + 0.25], np.float32)


def install(folder: Path) -> dict[str, str]:
    """Put the one file where Python finds it, announced as a package would; return the environment for that."""
    information = folder / "scale-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: scale\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[kitchensync.sensors]\nscale = scale:Scale\n")
    (folder / "scale.py").write_text(SCALE)
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


@pytest.fixture
def take(runtime, tmp_path, monkeypatch) -> Path:
    with monkeypatch.context() as patch:
        for name, value in install(tmp_path / "site").items():
            patch.setenv(name, value)
        rig = tmp_path / "rig.toml"
        rig.write_text(f'[sensor.scale]\nkind = "scale"\ncount = {COUNT}\n')
        done = kitchensync("record", "take", "--data", tmp_path / "data", "--rig", rig, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ended"] == "ended_by_device"
    return tmp_path / "data" / "take"


def told(*command: object) -> dict:
    done = kitchensync(*command, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_sensor_in_one_file_does_all_that_the_headset_does(take, tmp_path, monkeypatch):
    # on disk it is a typed table, which an independent reader opens without us
    (chunk,) = (take / "scale" / "weight").glob("*.h5")
    with h5py.File(chunk) as file:
        grams = file["records"]["grams"].reshape(COUNT, 2)
        assert file.attrs["layout"].decode() == "records"
    for number in range(COUNT):
        want = [np.nan] * 2 if number == ODD else expected(number)
        np.testing.assert_array_equal(grams[number], want)

    # it is verified by its size anywhere, by its own check where it is installed
    answer = told("verify", take)["streams"]["scale/weight"]
    assert (answer["stored"], answer["missing"], answer["undecodable"]) == (COUNT, [], [])
    with monkeypatch.context() as patch:
        patch.setenv(
            "PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])
        )
        answer = told("verify", take)["streams"]["scale/weight"]
    assert (answer["stored"], answer["undecodable"]) == (COUNT, [ODD])

    # it decodes, here without the plug-in
    with open_recording(take) as recording:
        decoded = dict(recording["scale/weight"].decoded())
        assert recording["scale/weight"].bad == {}
    assert list(decoded) == list(range(COUNT))
    np.testing.assert_array_equal(decoded[40]["grams"], expected(40))
    assert decoded[40]["is_still"].tolist() == [0, 1]

    said = told("info", take)["streams"]["scale/weight"]
    assert (said["packets"], said["codec"], said["nominal_hz"]) == (COUNT, "weights", 50.0)


@pytest.mark.skipif(importlib.util.find_spec("rerun") is None, reason="Rerun is not installed (extra `view`)")
def test_a_sensor_in_one_file_is_viewed(take, tmp_path):
    from rerun.chunk import RrdReader

    file = tmp_path / "take.rrd"
    done = kitchensync("view", take, "--save", file)
    assert done.returncode == 0, done.stderr
    with open_recording(take) as recording:
        arrived = recording["scale/weight"].index["host_ns"].astype(np.int64)
        since_start = arrived - recording.manifest["started"]["host_ns"]
    rows: dict[int, float] = {}
    for chunk in RrdReader(file).stream().to_chunks():
        batch = chunk.to_record_batch()
        if str(chunk.entity_path) == "/scale/weight/grams":
            at = batch.column(batch.schema.get_field_index("session_ns")).cast("int64").to_pylist()
            (scalars,) = [name for name in batch.schema.names if "calars" in name]
            values = [value[0] for value in batch.column(batch.schema.get_field_index(scalars)).to_pylist()]
            rows |= dict(zip(at, values, strict=True))
    want = [np.nan if number == ODD else expected(number).mean() for number in range(COUNT)]
    np.testing.assert_allclose(sorted(rows), since_start, rtol=0, atol=100, err_msg="ns, in steps of a tick")
    np.testing.assert_array_equal([rows[at] for at in sorted(rows)], want)
