"""Whole recordings of everything a headset has, of several headsets, of a foreign server, and of plug-in sensors."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from made_videos import write_video
from processes import COMMAND, Kitchen, kitchensync, running, wait_until_all_stream
from second_server import SecondServer

import kitchensync as ks
from kitchensync.reader.reading_clock import NotKnown
from kitchensync.reader.timed_stream import Unreadable
from kitchensync.storage.ledger import CameraSettingsNote, ClosedNote, NewWorldFrameNote, StampNote, of_kind
from kitchensync.storage.ledger_reader import read_notes
from kitchensync.storage.recording import open_recording

pytestmark = [pytest.mark.system, pytest.mark.timeout(240)]
ROOT = Path(__file__).resolve().parents[2]
STREAMS = [
    "pv", "vlc_leftfront", "vlc_leftleft", "vlc_rightfront", "vlc_rightright", "depth_longthrow", "accelerometer",
    "gyroscope", "magnetometer", "microphone", "spatial_input", "eye_tracking", "extended_audio", "extended_video",
    "extended_depth",
]  # fmt: skip
NOT_READ_AT_ONCE = {
    "gyroscope": (NotKnown, "run `kitchensync sync`"),  # which measures its unit
    "extended_depth": (Unreadable, "no decoder is set"),
}
AFTER_THE_BURST_S = 2.5
CALIBRATED = {*STREAMS[:9], "extended_audio", "extended_video"} - {"magnetometer"}


def recorded(*arguments: object) -> dict:
    done = kitchensync("record", "take", *map(str, arguments), "--json", limit_s=200)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def recorded_with_faults(place: Kitchen, runtime: Path, faults: list[str], *arguments: object) -> dict:
    """Record a kitchen until it ends; faults are played when every stream has come."""
    command = [COMMAND, "record", "take", "--hololens", place.host, *map(str, arguments), "--json"]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as recorder:
        wait_until_all_stream(recorder, runtime)
        place.type(*(f"fault {fault}" for fault in faults))
        said, errors = recorder.communicate(timeout=200)
    assert said, errors
    return json.loads(said)


def test_every_stream_is_recorded_and_read(kitchen, runtime, tmp_path):
    place = kitchen("--rings", seconds=4)
    data = tmp_path / "data"
    answer = recorded("--data", data, "--hololens", place.host, "--streams", ",".join(STREAMS))
    truth = place.truth()["streams"]
    for name in STREAMS:
        stored, sent = answer["streams"][f"hololens/{name}"], truth[f"hololens/{name}"]
        assert stored["stored"] == sent["packets"] > 0, name
        assert stored["sha256"] == sent["sha256"], name
    with open_recording(data / "take") as recording:
        for name in STREAMS:
            if name in CALIBRATED:
                constants = recording.calibration(f"hololens/{name}")
                assert all(table.meaning for table in constants.values()), name
        assert set(recording.manifest["files"]) >= {"hololens/calibration/vlc_leftfront.h5"}
        frames = list(recording["hololens/pv"].frames(20, 25))
        stamps = recording["hololens/pv"].index["device_ticks"][20:25].tolist()
        assert [frame.device_ticks for frame in frames] == stamps
        samples = recording["hololens/gyroscope"].samples()
        assert (np.diff(samples.ticks) > 0).mean() > 0.999, "repaired stamps go forward across batches"
        assert len(np.unique(samples.soc_ticks)) == len(recording["hololens/gyroscope"])
    with ks.open(data / "take") as rec:
        for name in STREAMS:
            stream = rec[f"hololens/{name}"]
            assert len(stream) > 0, name
            assert np.isfinite(stream.times).all(), name
            if name in NOT_READ_AT_ONCE:
                kind, words = NOT_READ_AT_ONCE[name]
                with pytest.raises(kind, match=words):
                    stream[-1]
            else:
                assert np.asarray(stream[-1]).size > 0, name
            assert stream.index_at(float(stream.times[2])) == 2, name
        assert rec.depth.name == "hololens/depth_longthrow"
        assert rec.depth.points(2).shape[1] == 3
        assert np.isfinite(rec.vlc_leftfront.world_from_vlc_leftfront[5]).all()
        assert rec.gaze.source == "hololens/eye_tracking"


def test_a_server_that_the_project_did_not_write_is_recorded_without_a_difference(
    runtime, tmp_path, loopback_host
):
    server = SecondServer(loopback_host, seconds=4)
    try:
        chosen = ",".join(name for name in server.STREAMS if name != "depth_longthrow")
        answer = recorded("--data", tmp_path / "data", "--hololens", loopback_host, "--streams", chosen)
    finally:
        server.close()
    assert server.errors == []
    assert answer["ended"] == "ended_by_device"
    assert "virtual" not in json.loads((tmp_path / "data" / "take" / "recording.json").read_text())
    for name in chosen.split(","):
        stored = answer["streams"][f"hololens/{name}"]
        assert stored["stored"] == len(server.sent[name]) > 10, name
        assert stored["sha256"] == server.digest(name), name


@pytest.mark.promise("Two headsets and a sensor of your own become streams")
def test_two_headsets_in_one_recording(kitchen, runtime, tmp_path, loopback_host):
    first = kitchen("--rings", seconds=4)
    second_host = loopback_host.rsplit(".", 1)[0] + ".1"  # the other never ends in 1
    out = tmp_path / "second"
    second = [COMMAND, "simulate", "--seed", "2", "--seconds", "4", "--rings", "--hololens-host", second_host]
    second += ["--gopro-host", second_host, "--gopro-port", "0", "--out", str(out)]
    chosen = ",".join(
        f"hololens-{side}/{name}" for side in "ab" for name in ("gyroscope", "spatial_input", "pv")
    )
    devices = ("--hololens", f"hololens-a={loopback_host}", "--hololens", f"hololens-b={second_host}")
    with running(second, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith("ready")
        answer = recorded("--data", tmp_path / "data", *devices, "--streams", chosen)
        process.terminate()
        assert process.wait(60) == 0
    truths = {"a": first.truth(), "b": json.loads((out / "truth.json").read_text())}
    for side in "ab":
        truth = truths[side]["streams"]
        for name in ("gyroscope", "spatial_input", "pv"):
            stored = answer["streams"][f"hololens-{side}/{name}"]
            assert stored["sha256"] == truth[f"hololens/{name}"]["sha256"], (side, name)


def test_faults_on_some_streams_leave_the_others_whole(kitchen, runtime, tmp_path):
    faults = [
        "half_packet:pv",
        "garbage_size:depth_ahat",
        "garbage_payload:magnetometer+1",
        "time_jump:accelerometer-5",
        "duplicate_stamps:spatial_input+0.5",
        "slow_drip:eye_tracking+1",
        "burst:microphone+1.5",
        f"garbage_payload:microphone@{AFTER_THE_BURST_S}+0.5",
    ]
    place = kitchen("--rings", seconds=15)
    data = tmp_path / "data"
    names = "pv,depth_ahat,magnetometer,accelerometer,spatial_input,eye_tracking,microphone,gyroscope"
    answer = recorded_with_faults(place, runtime, faults, "--data", data, "--streams", names)
    truth = place.truth()
    for name in names.split(","):
        stored, sent = answer["streams"][f"hololens/{name}"], truth["streams"][f"hololens/{name}"]
        assert stored["sha256"] == sent["sha256"], name
        assert (stored["missing"], stored["duplicates"]) == ([], 0), name
    causes = {
        name: {gap["cause"] for gap in answer["streams"][f"hololens/{name}"]["gaps"]}
        for name in names.split(",")
    }
    assert causes["pv"] >= {"network"}
    assert causes["depth_ahat"] >= {"corrupt_packet"}
    assert causes["gyroscope"] <= {"device_rate"}
    notes = read_notes(data / "take")
    flags = {name: {note.flag for note in of_kind(notes[name], StampNote)} for name in notes}
    assert flags["hololens/accelerometer"] == {"back"}
    assert flags["hololens/spatial_input"] >= {"same"}
    lines = (place.out / "truth" / "hololens" / "microphone.jsonl").read_text().splitlines()
    garbage = [row for row, line in enumerate(lines) if json.loads(line)["fault"] == "garbage_payload"]
    assert answer["streams"]["hololens/microphone"]["undecodable"] == garbage != []
    assert answer["streams"]["hololens/gyroscope"]["undecodable"] == []
    with open_recording(data / "take") as recording:
        sound = recording["hololens/microphone"]
        ticks = sound.index["device_ticks"]
        heard = {ticks_of for ticks_of, _ in sound.sound()}
    assert sorted(sound.bad) == garbage
    assert heard >= {int(t) for row, t in enumerate(ticks) if row not in garbage and row - 1 not in garbage}
    cut = of_kind(notes["hololens/pv"], ClosedNote)[0]
    assert cut.at_boundary is False


def test_an_app_restart_is_a_gap_and_a_new_world_frame(kitchen, runtime, tmp_path):
    place = kitchen("--rings", seconds=15)
    data = tmp_path / "data"
    names = ("pv", "vlc_leftfront", "spatial_input", "gyroscope")
    streams = ("--streams", ",".join(names))
    answer = recorded_with_faults(place, runtime, ["app_restart+1.5"], "--data", data, *streams)
    truth = place.truth()
    assert len(truth["world_frames"]) == 1
    restart_ticks = truth["world_frames"][0]["from_ticks"]
    with open_recording(data / "take") as recording:
        for name in names:
            ticks = recording[f"hololens/{name}"].index["device_ticks"]
            (row,) = answer["streams"][f"hololens/{name}"]["new_world_frames"]
            assert ticks[row - 1] <= restart_ticks < ticks[row], name
            warned = [
                reason for reason in answer["reasons"] if reason.startswith(f"hololens/{name}: a new world")
            ]
            assert len(warned) == 1
            assert f"packet {row} on" in warned[0]
        ordered = [order["ticks"] for order in truth["loop_control"]]
        assert len(ordered) == 2
        (row,) = answer["streams"]["hololens/vlc_leftfront"]["new_world_frames"]
        first = recording["hololens/vlc_leftfront"].index["device_ticks"][row]
        assert restart_ticks < ordered[1] < first, "before the grey camera is opened again"
    for name in names:
        stored = answer["streams"][f"hololens/{name}"]
        assert stored["sha256"] == truth["streams"][f"hololens/{name}"]["sha256"], name
        assert "network" in {gap["cause"] for gap in stored["gaps"]}, name
        assert of_kind(read_notes(data / "take")[f"hololens/{name}"], NewWorldFrameNote), name
    assert kitchensync("sync", data / "take").returncode == 0
    with open_recording(data / "take") as recording:
        poses = [recording.at(k).worlds.get("head") for k in range(len(recording.instants))]
    assert set(poses) - {None} == {0, 1}
    told = [world for world in poses if world is not None]
    assert told == sorted(told)


def test_camera_settings_are_applied_and_read_back(kitchen, runtime, tmp_path):
    place = kitchen(seconds=4)
    rig = tmp_path / "rig.toml"
    rig.write_text(
        f'pv_focus_mm = 900\npv_exposure_us = 12000\npv_white_balance_k = 5000\nstreams = ["pv"]\npv_width = 424\n'
        f'pv_height = 240\n[hololens]\nhololens = "{place.host}"\n'
    )
    data = tmp_path / "data"
    recorded("--data", data, "--rig", rig)
    with open_recording(data / "take") as recording:
        metadata = [frame.metadata for frame in recording["hololens/pv"].frames(0, 3)]
    seen = {(int(m["lens_position"]), int(m["exposure_time"]), int(m["white_balance"])) for m in metadata}
    assert seen == {(900, 120_000, 5000)}
    notes = of_kind(read_notes(data / "take")["hololens/pv"], CameraSettingsNote)
    assert [note.differ for note in notes] == [{}]


def test_near_and_far_depth_are_refused_together(runtime, tmp_path):
    streams = "depth_ahat,depth_longthrow"
    done = kitchensync(
        "record", "take", "--data", tmp_path, "--hololens", "127.0.0.1", "--streams", streams, "--json"
    )
    assert done.returncode == 1
    assert "one physical sensor" in done.stderr


@pytest.fixture
def plugins(tmp_path, monkeypatch) -> Path:
    """Install the two example sensors as a package would announce them."""
    folder = tmp_path / "site"
    information = folder / "kitchen_plugins-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: kitchen-plugins\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(
        "[kitchensync.sensors]\njson_lines = json_lines:JsonLines\ncamera = camera:Camera\n"
    )
    for name in ("json_lines", "camera"):
        (folder / f"{name}.py").write_text((ROOT / "examples" / "plugins" / f"{name}.py").read_text())
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))
    return folder


@pytest.mark.promise("Two headsets and a sensor of your own become streams")
def test_plug_in_sensors_become_streams(plugins, runtime, tmp_path):
    film, sent = tmp_path / "film.mkv", []
    write_video(film, (np.full((48, 64, 3), number, np.uint8) for number in range(50)), 25, bf="2")
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            for number in range(100):
                line = json.dumps({"t_ms": number * 20 + 0.5, "grams": random.random()}).encode()
                connection.sendall(line + b"\n")
                sent.append(line)
                time.sleep(0.02)

    thread = threading.Thread(target=serve)
    thread.start()
    rig = tmp_path / "rig.toml"
    port = listener.getsockname()[1]
    rig.write_text(
        f'[sensor.scale]\nkind = "json_lines"\naddress = "127.0.0.1:{port}"\nticks_key = "t_ms"\n'
        f'nominal_hz = 50\n[sensor.ceiling]\nkind = "camera"\nurl = "{film}"\n'
    )
    try:
        answer = recorded("--data", tmp_path / "data", "--rig", rig)
    finally:
        listener.close()
        thread.join()
    assert answer["ended"] == "ended_by_device"
    assert answer["streams"]["scale/lines"]["stored"] == len(sent)
    assert answer["streams"]["ceiling/video"]["stored"] == 50
    with open_recording(tmp_path / "data" / "take") as recording:
        assert [payload for _, payload in recording["scale/lines"].packets()] == sent
        assert recording["scale/lines"].index["device_ticks"][:2].tolist() == [5_000, 205_000]
    assert json.loads(kitchensync("verify", tmp_path / "data" / "take", "--json").stdout)["status"] in (
        "PASS",
        "WARN",
    )


def test_a_sensor_that_is_not_installed_is_one_line(runtime, tmp_path):
    rig = tmp_path / "rig.toml"
    rig.write_text('[sensor.x]\nkind = "telepathy"\n')
    done = kitchensync("record", "take", "--data", tmp_path / "data", "--rig", rig)
    assert done.returncode == 1
    assert "no sensor of kind 'telepathy'" in done.stderr


def test_doctor_sees_what_is_wrong_with_a_headset(kitchen, runtime, tmp_path):
    place = kitchen(
        "--fault", "never_answer:magnetometer", "--fault", "refuse_port:microphone",
        "--fault", "wrong_version:1.0.38", seconds=15,
    )  # fmt: skip
    done = kitchensync("doctor", place.host, "--streams", "magnetometer,gyroscope", "--json")
    report = json.loads(done.stdout)
    (silent,) = (finding for finding in report["findings"] if finding["what"].startswith("magnetometer"))
    cannot_tell = "too busy to tell" in silent["advice"]  # this computer, beside other tests
    assert (silent["status"], done.returncode) == (("look", 0) if cannot_tell else ("bad", 1))
    assert report["ports"]["magnetometer"] == "silent"
    assert report["ports"]["microphone"] == "refused"
    assert report["ports"]["gyroscope"] == "open"
    assert report["research_mode"] is True
    by_name = {finding["what"]: finding["status"] for finding in report["findings"]}
    assert by_name["server version"] == "look"
    assert report["round_trip_ms"].keys() == {"best", "median", "worst"}


def test_doctor_and_rig_for_this_computer(tmp_path):
    done = kitchensync("doctor", "--data", tmp_path, "--minutes", "1", "--json")
    report = json.loads(done.stdout)
    assert report["schema"] == "doctor/1"
    assert {
        "clock source",
        "NTP",
        "disk space",
        "write rate",
        "sleep",
        "interfaces",
        "tablet port",
        "encryption",
    } <= {finding["what"] for finding in report["findings"]}
    rig = tmp_path / "rig.toml"
    assert kitchensync("rig", "init", rig).returncode == 0
    assert kitchensync("rig", "init", rig).returncode == 1
    checked = json.loads(kitchensync("rig", "check", rig, "--json").stdout)
    assert len(checked["streams"]) == 7
    text = rig.read_text().replace("# pv_codec", "pv_codec").replace("# streams", "streams")
    rig.write_text(text.replace('"h265"            #', '"av1"            #', 1))
    assert "av1" in kitchensync("rig", "check", rig).stderr
