"""A recording that is served again gives the same recording; no packet of a privacy pause leaves."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numbered_recording import PV_S, write_numbered
from processes import COMMAND, LIMIT_S, kitchensync, one_line, record_command, running
from small_recordings import HOST0_NS

from kitchensync.sensors.hololens.streams import pv
from kitchensync.sensors.hololens.video import nal_types
from kitchensync.storage.events import EventLog
from kitchensync.storage.exports.sent_streams import sent_by_headset
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.recording import open_recording

pytestmark = pytest.mark.slow

PV = "hololens/pv"


@pytest.fixture
def take(kitchen, tmp_path, runtime) -> Path:
    """A recording of the virtual kitchen."""
    place, data = kitchen("--rings"), tmp_path / "data"
    subprocess.run(record_command(place, data), check=True, stdout=subprocess.DEVNULL, timeout=LIMIT_S)
    place.truth()  # its address is free again
    return data / "take"


def served(recording: Path, host: str) -> Iterator[str]:
    """Serve a recording; yield the line that records it."""
    command = [COMMAND, "replay", str(recording), "--hololens-host", host]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == f"ready hololens={host}\n"
        yield next(line for line in process.stderr if "kitchensync record" in line).partition(": ")[2]
        process.stderr.close()


def test_what_is_served_again_is_recorded_as_it_was(take, loopback_host, tmp_path):
    for line in served(take, loopback_host):
        arguments = [*shlex.split(line)[1:], "--data", str(take.parent), "--json"]
        answer = json.loads(kitchensync(*arguments, limit_s=LIMIT_S).stdout)
    assert answer["status"] == "PASS"
    with open_recording(take) as first, open_recording(take.parent / "take-again") as second:
        assert second.manifest["consent"] == first.manifest["consent"]
        assert sorted(second.streams) == sorted(first.streams)
        for name in first.streams:
            before, after = first[name], second[name]
            begin = 0
            if name == PV:  # a video that begins between key frames cannot be shown from there
                payloads = (pv.cut(payload).image for _, payload in before.packets())
                begin = next(row for row, image in enumerate(payloads) if 32 in nal_types("h265", image))
            assert [payload for _, payload in after.packets()] == [p for _, p in before.packets(begin)], name
            np.testing.assert_array_equal(after.index["device_ticks"], before.index["device_ticks"][begin:])
            if (poses := before.poses()) is not None:
                np.testing.assert_array_equal(after.poses(), poses[begin:])
            for one, table in first.calibration(name).items() if first.sensor(name).constants else ():
                np.testing.assert_array_equal(second.calibration(name)[one].values, table.values)
        assert second.manifest["made_from"] == [first.manifest["uuid"]]
    withdrawn = json.loads(kitchensync("withdraw", str(take), "--json").stdout)
    assert sorted(withdrawn["recordings"]) == ["take", "take-again"], "what is made of it goes with it"


def test_streams_in_another_form_are_refused(take, loopback_host, tmp_path):
    rig = tmp_path / "rig.toml"
    rig.write_text(f'pv_width = 1280\npv_height = 720\n[hololens]\nhololens = "{loopback_host}"\n')
    for _ in served(take, loopback_host):
        asked = ["--data", tmp_path / "again", "--rig", rig, "--streams", "pv", "--start-timeout", "5"]
        done = kitchensync("record", "again", *asked)
    assert done.returncode == 1
    assert "hololens/pv" in one_line(done)


def test_nothing_of_a_privacy_pause_leaves_and_a_video_goes_on_with_a_key_frame(tmp_path):
    write_numbered(tmp_path)
    take = tmp_path / "take1"
    log, span = EventLog(take, "tablet"), [HOST0_NS + round(PV_S[row] * 1e9) for row in (100, 150)]
    log.append("pause", host_ns=span[0], uncertainty_ns=0, body={})
    log.append("resume", host_ns=span[1], uncertainty_ns=0, body={})
    with open_recording(take) as recording:
        hidden = recording[PV].hidden
        front = next(one for one in sent_by_headset(recording).streams if one.name == "pv")
    assert hidden[100:151].all()
    assert not hidden[front.rows].any()
    first = int(front.rows[front.rows > 150][0])
    assert front.begins[front.rows == first].all()
    with open_recording(take) as recording:
        payloads = dict(recording[PV].packets())
    begins = [row for row in sorted(payloads) if 5 in nal_types("h264", pv.cut(payloads[row]).image)]
    assert first == next(row for row in begins if row > 150 and not hidden[row])


def test_what_was_withdrawn_or_holds_no_headset_is_refused(tmp_path):
    write_numbered(tmp_path)
    take = tmp_path / "take1"
    with edit_manifest(take) as manifest:
        manifest["streams"] = {}
    done = kitchensync("replay", str(take))
    assert (done.returncode, "no stream of a headset" in one_line(done)) == (1, True)
    with edit_manifest(take) as manifest:
        manifest["withdrawn"] = {"host_ns": 1}
    for host in ("192.168.1.20", "::1", "localhost"):  # to the first anybody could connect
        done = kitchensync("replay", str(take), "--hololens-host", host)
        assert (done.returncode, "no loopback address" in done.stderr) == (2, True), host
    done = kitchensync("replay", str(take))
    assert (done.returncode, "withdrawn" in one_line(done)) == (1, True)
