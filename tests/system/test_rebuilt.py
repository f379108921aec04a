"""The manifest of a real recording is lost and rebuilt: every balance and every alignment is the same as before."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from processes import kitchensync

from kitchensync.storage.manifest import read_manifest

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

OF_A_FILE = ("inputs", "created")
SAME = ("received", "stored", "duplicates", "missing", "gaps", "bytes", "sha256", "coverage", "ended")
STREAMS = "pv,gyroscope,accelerometer,spatial_input,microphone"


@pytest.fixture
def take(kitchen, runtime, tmp_path) -> Path:
    place = kitchen("--fault", "drop_connection:gyroscope@4", seconds=9)
    words = ["--hololens", place.host, "--gopro", place.camera, "--streams", STREAMS, "--participant", "P07"]
    done = kitchensync("record", "take", "--data", tmp_path / "data", *words, "--chunk-seconds", "2")
    assert done.returncode == 0, done.stderr
    return tmp_path / "data" / "take"


def asked(command: str, path: Path) -> dict:
    answer: dict = json.loads(kitchensync(command, path, "--json").stdout)
    return answer["recordings"][0] if "recordings" in answer else answer


def stated_starts(pair: dict) -> list[float]:
    """Take out where each clock says that the film begins, s."""
    return [stated.pop("prior_s") for stated in pair["evidence"]["timestamps"]["statements"]]


def test_a_rebuilt_recording_verifies_and_synchronizes_as_the_original(take):
    before, aligned = asked("verify", take), asked("sync", take)
    original = read_manifest(take)
    shutil.rmtree(take / "sync")
    (take / "recording.json").unlink()
    lost = kitchensync("verify", take.parent)
    assert lost.returncode == 1
    assert "recording.json is missing" in lost.stdout
    assert f"kitchensync recover --rebuild {take}" in lost.stdout
    done = kitchensync("recover", "--rebuild", take)
    assert done.returncode == 0, done.stderr
    after = asked("verify", take)
    assert after["status"] == "WARN"
    assert [reason for reason in after["reasons"] if reason not in before["reasons"]] == after["reasons"][:1]
    assert "unknown: participant, place" in after["reasons"][0]
    assert any(facts.get("gaps") for facts in before["streams"].values()), "the fault made a gap"
    assert after["streams"].keys() == before["streams"].keys()
    for name, facts in before["streams"].items():
        assert {key: after["streams"][name].get(key) for key in SAME} == {key: facts.get(key) for key in SAME}
    rebuilt = read_manifest(take)
    for key in ("uuid", "streams", "files", "state"):
        assert rebuilt[key] == original[key], key
    again = asked("sync", take)
    assert again["status"] == aligned["status"]
    for one, other in zip(again["pairs"], aligned["pairs"], strict=True):
        # what the log says of UTC was read a moment after the manifest's reading
        assert stated_starts(one) == pytest.approx(stated_starts(other), abs=1e-3)
        measured = one.keys() - set(OF_A_FILE)
        assert {key: one[key] for key in measured} == {key: other[key] for key in measured}
