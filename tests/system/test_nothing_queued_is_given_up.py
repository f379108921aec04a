"""What the queue still holds is never given up: it waits until it can be stored, and says where."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from processes import COMMAND, Kitchen, kitchensync, running, wait_until_all_stream

from kitchensync.storage.manifest import read_manifest
from kitchensync.storage.names import WORK
from kitchensync.storage.verify import verify

pytestmark = [pytest.mark.system, pytest.mark.timeout(240)]

STREAMS = "pv,gyroscope,accelerometer,microphone"
PLANTED = """
import kitchensync.storage.chunks.chunk_writer
lay_out = kitchensync.storage.chunks.chunk_writer.layout_image

def planted(packets, attributes, *rest, **options):
    if attributes["stream"] == "hololens/pv":
        raise ValueError("planted")
    return lay_out(packets, attributes, *rest, **options)

kitchensync.storage.chunks.chunk_writer.layout_image = planted
"""
"""A fault of ours in the sealing of one stream, in every process of the recorder."""


def planted_bug(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a recorder with a fault."""
    folder = tmp_path / "planted"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(PLANTED)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


def recorder(place: Kitchen, *more: str) -> list[str]:
    take = [COMMAND, "record", "take", "--data", "data", "--hololens", place.host, "--streams", STREAMS]
    return [*take, "--chunk-seconds", "1", *more]


def check_all_is_there(recording: Path, place: Kitchen) -> None:
    """Compare every stream with what the virtual kitchen sent."""
    truth = place.truth()["streams"]
    checked = verify(recording)
    assert read_manifest(recording)["state"] == "complete"
    for name, facts in checked["streams"].items():
        assert facts["stored"] == facts["received"] == truth[name]["packets"] > 0, name
        assert facts["sha256"] == truth[name]["sha256"], name
        assert facts["missing"] == [], name


def test_a_stream_that_cannot_be_sealed_waits_for_mended_software(kitchen, runtime, tmp_path):
    place = kitchen(seconds=8)
    with running(
        recorder(place),
        cwd=tmp_path,
        env=planted_bug(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as taken:
        said, red = [], None
        for line in taken.stderr:
            said.append(line)
            if red is None and "hololens/pv" in line and "planted" in line:
                red = taken.poll()
                assert red is None, "the red light comes while the recording runs"
        code = taken.wait()
        taken.stderr.close()
    words = "".join(said)
    assert code == 1, words
    assert red is None
    assert "kitchensync recover --data" in words
    assert "Traceback" not in words
    truth = place.truth()["streams"]
    recording = tmp_path / "data" / "take"
    checked = verify(recording)
    assert checked["status"] == "FAIL"
    assert any("hololens/pv" in reason and "wait" in reason for reason in checked["reasons"]), checked[
        "reasons"
    ]
    for name in set(checked["streams"]) - {"hololens/pv"}:
        assert checked["streams"][name]["stored"] == truth[name]["packets"] > 0, name
    manifest = read_manifest(recording)
    assert manifest["state"] == "recording"
    assert manifest["declared_losses"] == []
    assert manifest["waiting"]["hololens/pv"]["packets"] == truth["hololens/pv"]["packets"]
    assert (tmp_path / "data" / WORK / "take" / "appendonlydir").is_dir()

    done = subprocess.run(
        [COMMAND, "recover", "--data", "data"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    check_all_is_there(recording, place)
    assert not (tmp_path / "data" / WORK).exists()


@pytest.mark.parametrize("how", [pytest.param("renamed", marks=pytest.mark.slow), "moved away"])
def test_a_recording_folder_that_is_gone_loses_nothing(how, kitchen, runtime, tmp_path):
    place, data = kitchen(seconds=10), tmp_path / "data"
    elsewhere = data / "another name" if how == "renamed" else tmp_path / "away"
    with running(recorder(place), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as taken:
        wait_until_all_stream(taken, runtime)
        (data / "take").rename(elsewhere)
        said = []
        for line in taken.stderr:
            said.append(line)
            if "is gone" in line:
                break
        assert taken.poll() is None, "the red light comes while the recording runs"
        said += list(taken.stderr)
        assert taken.wait() == 1
        taken.stderr.close()
    words = "".join(said)
    assert str(data / WORK / "take") in words
    assert "Traceback" not in words
    if how == "moved away":
        refused = kitchensync("recover", "--data", data)
        assert refused.returncode == 1
        assert str(data / WORK / "take") in refused.stderr
        elsewhere.rename(data / "take")
        elsewhere = data / "take"
    done = kitchensync("recover", "--data", data)
    assert done.returncode == 0, done.stderr
    check_all_is_there(elsewhere, place)
    assert not (data / WORK).exists()
