"""`kitchensync export mcap`, read by `mcap` and the schemas in the file, agrees with `kitchensync.open`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from click.testing import CliRunner, Result
from cooked_recording import DONE_S
from made_videos import grey_planes, video_units
from mcap.reader import make_reader
from mcap_files import Topics, read
from numbered_pictures import luma_of, number_in
from numbered_recording import DEPTH_S, PV_S
from small_recordings import HOST0_NS, seal_stream

import kitchensync as ks
from kitchensync.cli import main
from kitchensync.exports import mcap_file
from kitchensync.reader.timed_stream import Unreadable
from kitchensync.sensors.hololens.streams import depth_ahat
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.recording import open_recording

pytestmark = pytest.mark.slow


def run(recording: Path, out: Path, *more: object) -> Result:
    """Write `out`/<recording>.mcap."""
    return CliRunner().invoke(main, ["export", "mcap", str(recording), "--out", str(out), *map(str, more)])


def ns_of(stamp: Any) -> int:
    return int(stamp.seconds * 1_000_000_000 + stamp.nanos)


def session_s(metadata: dict[str, dict[str, str]], host_ns: list[int]) -> Any:
    """Session seconds of host times, by the file's own metadata."""
    session_ns, at_ns = np.array(json.loads(metadata["kitchensync"]["session_ns_and_host_ns"])).T
    return np.interp(np.array(host_ns) - at_ns[0], at_ns - at_ns[0], session_ns) / 1e9


def pictures(messages: list[tuple[int, Any]]) -> list[Any]:
    decoder = av.CodecContext.create({"h264": "h264", "h265": "hevc"}[messages[0][1].format], "r")
    shown = [picture for _, message in messages for picture in decoder.decode(av.Packet(message.data))]
    return [*shown, *decoder.decode(None)]


@pytest.fixture(scope="module")
def made(
    cooked: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Topics, dict[str, Any], dict[str, Any]]:
    out = tmp_path_factory.mktemp("mcap")
    done = run(cooked, out, "--json")
    assert done.exit_code == 0, done.output
    topics, metadata = read(out / "take1.mcap")
    (report,) = json.loads(done.stdout)["recordings"]
    return topics, metadata, report


def test_times_agree_with_reading_to_the_nanosecond(made: Any, cooked: Path) -> None:
    topics, metadata, report = made
    assert sum(len(found) for found in topics.values()) == sum(report["messages"].values())
    with ks.open(cooked) as rec:
        for name, stream in {"hololens/pv": rec.pv, "gopro/video": rec.gopro}.items():
            messages = topics[f"/{name}"]
            assert [ns for ns, _ in messages] == stream.times_ns.tolist(), name
            assert [ns_of(message.timestamp) for ns, message in messages] == [ns for ns, _ in messages]
        offset_ns = int(metadata["kitchensync"]["utc_minus_host_ns"])
        assert (rec.pv.times_ns + offset_ns).tolist() == rec.pv.utc.astype(np.int64).tolist()
        with open_recording(cooked) as stored:
            assert len(topics["/hololens/gyroscope"]) == len(stored["hololens/gyroscope"]), (
                "one message per packet"
            )
        packets = topics["/hololens/gyroscope"]
        assert [ns for _, message in packets for ns in message.host_ns] == rec.gyroscope.times_ns.tolist()
        assert [ns for ns, _ in packets] == [message.host_ns[0] for _, message in packets]
        back_s = session_s(metadata, [ns for ns, _ in topics["/hololens/pv"]])
        np.testing.assert_allclose(back_s, rec.pv.times, atol=1e-6)
        assert metadata["kitchensync"]["alignment"] == rec.alignment.status
        for name in ("hololens/gyroscope", "gopro/gyroscope"):
            turning = np.concatenate(
                [np.transpose([rate.x, rate.y, rate.z]) for _, rate in topics[f"/{name}"]]
            )
            np.testing.assert_array_equal(turning.astype(np.float32), rec[name].values)
        head = np.array(
            [
                [getattr(message.translation, axis) for axis in "xyz"]
                for _, message in topics["/tf/hololens/head"]
            ]
        )
        np.testing.assert_allclose(head, rec.head.values[:, :3, 3])
        assert len(topics["/tf/hololens/pv"]) == len(PV_S) - 1, "one pose was not tracked"


def test_frames_are_those_that_were_stored(made: Any, cooked: Path) -> None:
    topics = made[0]
    assert [number_in(luma_of(frame)) for frame in pictures(topics["/hololens/pv"])] == list(range(len(PV_S)))
    film = pictures(topics["/gopro/video"])
    with ks.open(cooked) as rec:
        assert len(film) == len(rec.gopro)
        for number in (0, 59, 300, len(film) - 1):
            exported = film[number].to_ndarray(format="rgb24").astype(int)
            assert np.abs(exported - rec.gopro[number]).mean() < 1.0
    depth = [np.frombuffer(message.data, "<u2") for _, message in topics["/hololens/depth_ahat"]]
    assert [int(millimetres.max()) for millimetres in depth] == [
        100 + n for n in range(len(DEPTH_S)) if n != 3
    ]
    assert topics["/hololens/depth_ahat"][0][1].encoding == "16UC1"


def with_encoded_depth(cooked: Path, place: Path) -> Path:
    """Copy a recording with near depth as video; each frame has one depth, and the next is further away."""
    take = Path(shutil.copytree(cooked, place / "take1"))
    with ks.open(take) as rec:
        ticks = rec.stored["hololens/depth_ahat"].index["device_ticks"].tolist()
    further = [grey_planes(20 * (1 + number), 512, 768) for number in range(len(ticks))]
    units = enumerate(video_units(further, key_every=5))
    rows = [(at, depth_ahat.encode(unit, number)) for at, (number, unit) in zip(ticks, units, strict=True)]
    shutil.rmtree(take / "hololens/depth_ahat")
    seal_stream(take, "hololens/depth_ahat", rows)
    with edit_manifest(take) as manifest:
        manifest["streams"]["hololens/depth_ahat"]["format"] = {"codec": "h264", "packing": "luma is depth"}
    return take


def test_encoded_depth_can_be_exported_as_video(cooked: Path, tmp_path: Path) -> None:
    take = with_encoded_depth(cooked, tmp_path)
    options = ("--streams", "depth_ahat", "--depth-as-stored")
    assert run(take, tmp_path / "out", *options).exit_code == 0
    path = tmp_path / "out/take1.mcap"
    messages = read(path)[0]["/hololens/depth_ahat"]
    with ks.open(take) as rec:
        assert [ns for ns, _ in messages] == rec.depth.times_ns.tolist()
        payloads = [rec.stored["hololens/depth_ahat"].payload(row) for row in range(len(messages))]
    assert all(
        bytes(message.data) in payload for (_, message), payload in zip(messages, payloads, strict=True)
    )
    assert len(pictures(messages)) == len(messages) == len(DEPTH_S)
    with path.open("rb") as file:
        channels = make_reader(file).get_summary().channels.values()
        (about,) = (channel.metadata for channel in channels if channel.topic == "/hololens/depth_ahat")
    assert about == {"packing": "luma is depth"}
    assert run(take, tmp_path / "out", *options).exit_code == 0, "the existing file is kept"
    decoded = run(take, tmp_path / "out", "--streams", "depth_ahat")
    assert decoded.exit_code == 1, "decoded depth would be another file"


def test_steps_errors_and_left_out_streams_are_in_the_file(made: Any, cooked: Path) -> None:
    topics, metadata, report = made
    lines = [message.message for _, message in topics["/steps"]]
    assert lines[-1] == "end 3: Do-Do thing 3"
    assert "end 2: Do-Do thing 2 (Technique Error: spilt)" in lines
    ((error_ns, error),) = topics["/errors"]
    with ks.open(cooked) as rec:
        assert json.loads(error.message) == rec.error_rows[0]
        assert error_ns == pytest.approx(HOST0_NS + (DONE_S[2] - 0.1) * 1e9, abs=2e6)
    assert [message.message.partition(" ")[0] for _, message in topics["/events"]] == [
        "recipe",
        "done",
        "error",
        "done",
        "done",
    ]
    assert metadata["left_out"] == report["left_out"]
    assert "constants" in metadata["left_out"]["hololens/depth_ahat poses"]


def test_a_span_begins_at_a_key_frame(cooked: Path, tmp_path: Path) -> None:
    assert (
        run(cooked, tmp_path, "--from", 6, "--to", 8, "--streams", "pv,gopro/video,gyroscope").exit_code == 0
    )
    topics, metadata = read(tmp_path / "take1.mcap")
    assert {topic for topic in topics if topic.count("/") == 2} >= {"/hololens/pv", "/gopro/video"}
    assert not any("depth" in topic or "hands" in topic for topic in topics)
    numbers = [number_in(luma_of(frame)) for frame in pictures(topics["/hololens/pv"])]
    with ks.open(cooked) as rec:
        rows = rec.pv.span(6, 8)
        assert numbers[-1] == rows[-1]
        assert numbers == list(range(numbers[0], rows[-1] + 1))
        assert 0 <= rows[0] - numbers[0] < 30
        samples = sum(len(message.x) for _, message in topics["/hololens/gyroscope"])
        assert samples == len(rec.gyroscope.span(6, 8))
    frames_s = session_s(metadata, [ns for ns, _ in topics["/gopro/video"]])
    assert 6 <= frames_s[0] < 7.1
    assert 7.9 < frames_s[-1] < 8


def test_nothing_of_a_pause_is_in_the_file(cooked: Path, tmp_path: Path) -> None:
    shutil.copytree(cooked, tmp_path / "take1")
    log = EventLog(tmp_path / "take1", "operator")
    for kind, at_s in (("pause", 9.0), ("resume", 12.5)):
        log.append(kind, host_ns=HOST0_NS + round(at_s * 1e9), uncertainty_ns=0, body={}, op_id=kind)
    assert run(tmp_path / "take1", tmp_path / "out").exit_code == 0
    topics, _ = read(tmp_path / "out/take1.mcap")
    for topic, messages in topics.items():
        inside = [ns for ns, _ in messages if HOST0_NS + 9_000_000_000 <= ns <= HOST0_NS + 12_500_000_000]
        assert inside == [] or topic in ("/errors", "/events", "/steps"), topic
    numbers = [number_in(luma_of(frame)) for frame in pictures(topics["/hololens/pv"])]
    hidden = np.flatnonzero((PV_S >= 9.0) & (PV_S <= 12.5))
    assert not set(hidden.tolist()) & set(numbers)
    assert next(n for n in numbers if n is not None and n > hidden[-1]) % 30 == 0, (
        "a key frame comes first after the pause"
    )
    assert None not in numbers
    assert len(pictures(topics["/gopro/video"])) == len(topics["/gopro/video"])
    cut = run(tmp_path / "take1", tmp_path / "cut", "--from", 9.5, "--to", 12)
    assert (cut.exit_code, "hololens/pv left out: " in cut.stderr) == (0, True), cut.output
    assert "outside of a privacy pause or cut" in cut.stderr


def test_events_before_the_clock_started_are_left_out(cooked: Path, tmp_path: Path) -> None:
    shutil.copytree(cooked, tmp_path / "take1")
    EventLog(tmp_path / "take1", "operator").append(
        "mark", host_ns=-(10**10), uncertainty_ns=0, body={}, op_id="m"
    )
    done = run(tmp_path / "take1", tmp_path / "out", "--streams", "gyroscope", "--json")
    assert done.exit_code == 0, done.output
    topics, metadata = read(tmp_path / "out/take1.mcap")
    assert not [message for _, message in topics["/events"] if message.message.startswith("mark")]
    assert "before the capture computer's clock" in metadata["left_out"]["events"]


def test_a_full_disk_is_reported_in_one_line(
    cooked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise RuntimeError("FoxgloveError: MCAP error: attempted another write after a write method failed")

    monkeypatch.setattr(mcap_file, "_logged", full)
    done = run(cooked, tmp_path)
    assert (done.exit_code, "free some space" in done.output, done.output.count("\n")) == (1, True, 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_paused", [True, False])
def test_the_rest_of_a_redacted_video_is_exported(cooked: Path, tmp_path: Path, is_paused: bool) -> None:
    take = Path(shutil.copytree(cooked, tmp_path / "take1"))
    with ks.open(take) as rec:
        rows = rec.gopro.rows
        whole = rec.gopro[-1]
    if is_paused:
        log = EventLog(take, "tablet")
        log.append("pause", host_ns=HOST0_NS + 10 * 10**9, uncertainty_ns=0, body={})
        log.append("resume", host_ns=HOST0_NS + 12 * 10**9, uncertainty_ns=0, body={})
    span = [] if is_paused else ["--from", "10", "--to", "12"]
    done = CliRunner().invoke(main, ["redact", str(take), "--reason", "a visitor", *span])
    assert done.exit_code == 0, done.output
    assert CliRunner().invoke(main, ["sync", str(take), "--jobs", "1"]).exit_code == 0
    with ks.open(take) as rec:
        assert np.array_equal(rec.gopro[-1], whole)
        if not is_paused:
            with pytest.raises(Unreadable, match="cannot be decoded"):
                rec.gopro.at(11.0)
    assert run(take, tmp_path / "out").exit_code == 0
    topics, _ = read(tmp_path / "out" / "take1.mcap")
    shown = pictures(topics["/gopro/video"])
    assert len(rows) - 150 < len(shown) == len(topics["/gopro/video"]) < len(rows) - 60
