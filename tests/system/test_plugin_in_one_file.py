"""A sensor in one file: it records, verifies, decodes, stands in `info` and is viewed."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import textwrap
import threading
import time
import tomllib
from pathlib import Path

import h5py
import numpy as np
import pytest
from processes import COMMAND, kitchensync

from kitchensync.storage.recording import open_recording

pytestmark = pytest.mark.system

ROOT = Path(__file__).resolve().parents[2]
SCALE = ROOT / "examples" / "plugins" / "scale.py"
PAGE = (ROOT / "docs" / "how-to" / "add-a-sensor.md").read_text(encoding="utf-8")
PACKAGE, RIG, COMMANDS, READ = (
    textwrap.dedent(block) for block in re.findall(r"\n\n((?: {8}.*\n|\n(?= {8}))+)", PAGE)
)
"""The indented blocks of the page: `pyproject.toml`, `rig.toml`, commands, Python."""
ODD, COUNT = 7, 100


def weight(number: int) -> float:
    return float("nan") if number == ODD else number / 2


def serve(listener: socket.socket) -> None:
    """Be the scale: one line every 20 ms, one of them nonsense, then it is switched off."""
    with listener:
        connection, _ = listener.accept()
    with connection:
        for number in range(COUNT):
            connection.sendall(f"{weight(number)} {number % 2}\n".encode())
            time.sleep(0.02)


def install(folder: Path) -> dict[str, str]:
    """Put the one file where Python finds it, announced as the page says; return the environment for that."""
    project = tomllib.loads(PACKAGE)["project"]
    (kind, place) = next(iter(project["entry-points"]["kitchensync.sensors"].items()))
    information = folder / "scale-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: scale\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[kitchensync.sensors]\n{kind} = {place}\n")
    shutil.copy(SCALE, folder)
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


@pytest.fixture
def take(runtime, tmp_path, monkeypatch) -> Path:
    with monkeypatch.context() as patch:
        for name, value in install(tmp_path / "site").items():
            patch.setenv(name, value)
        listener = socket.create_server(("127.0.0.1", 0))
        rig, port = tmp_path / "rig.toml", listener.getsockname()[1]
        rig.write_text(RIG.replace("192.168.1.71:5000", f"127.0.0.1:{port}"))
        listener.settimeout(60)
        device = threading.Thread(target=serve, args=(listener,))
        device.start()
        done = kitchensync("record", "take-1", "--data", tmp_path / "data", "--rig", rig, "--json")
        device.join(30)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ended"] == "ended_by_device"
    return tmp_path / "data" / "take-1"


def told(*command: object) -> dict:
    done = kitchensync(*command, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_sensor_in_one_file_does_all_that_the_headset_does(take, tmp_path, monkeypatch):
    # on disk it is a typed table, which an independent reader opens without us
    (chunk,) = (take / "scale" / "weight").glob("*.h5")
    with h5py.File(chunk) as file:
        grams = file["records"]["grams"]
        assert file.attrs["layout"].decode() == "records"
    np.testing.assert_array_equal(grams, [weight(number) for number in range(COUNT)])

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
    assert [(decoded[row]["grams"].tolist(), decoded[row]["is_still"].tolist()) for row in (40, 41)] == [
        ([20.0], [0]),
        ([20.5], [1]),
    ]

    # it is checked, exported and read as the page shows
    for line in COMMANDS.splitlines()[1:]:
        command = [COMMAND, *shlex.split(line)[1:]]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "tables" / "take-1" / "scale" / "weight.parquet").is_file()
    opened, shown = READ.splitlines()
    program = f"import kitchensync as ks\n{opened}\nprint(*map(len, ({shown})))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == [str(COUNT)] * 2

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
    want = [weight(number) for number in range(COUNT)]
    np.testing.assert_allclose(sorted(rows), since_start, rtol=0, atol=100, err_msg="ns, in steps of a tick")
    np.testing.assert_array_equal([rows[at] for at in sorted(rows)], want)
