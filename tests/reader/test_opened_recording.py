"""`kitchensync.open` of a recording with known frames, samples, steps and a pause."""

from __future__ import annotations

import copy
import multiprocessing
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from cooked_recording import DONE_S, STEPS, WRONG, write_cooked
from films import film
from folder_contents import contents
from numbered_pictures import number_in
from numbered_recording import DEPTH_S, PV_S, film_host_ns, write_numbered
from small_recordings import FRAMES, HOST0_NS, UTC0_NS

import kitchensync as ks
from kitchensync.cli import main
from kitchensync.reader.film_streams import timeline_of
from kitchensync.reader.reading_clock import NotKnown
from kitchensync.reader.timed_stream import OutsideSpan, Unreadable
from kitchensync.sensors.errors import BadPacket
from kitchensync.storage.errors import BadChunk, BadName, NotARecording, UnknownStream
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest, write_json
from kitchensync.virtual_kitchen.kitchen import Kitchen

pytestmark = pytest.mark.slow
DAMAGED = 3
"""The depth packet that does not decode."""


@pytest.fixture(scope="module")
def cooked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Kitchen]:
    root = tmp_path_factory.mktemp("cooked")
    return root / "take1", write_cooked(root)


@pytest.fixture
def rec(cooked: tuple[Path, Kitchen]) -> Any:
    with ks.open(cooked[0]) as opened:
        yield opened


def session_s(kitchen: Kitchen, world_s: Any) -> Any:
    """Session seconds of world seconds, by the virtual kitchen's own clock: the first packet came at 0."""
    ticks = np.array([kitchen.headset_clock.ticks_at(float(at)) for at in np.atleast_1d(world_s)])
    return (ticks - kitchen.headset_clock.ticks_at(0.0)) / 1e7


def luma(rgb: np.ndarray) -> np.ndarray:
    return rgb.mean(axis=2)


@pytest.mark.filterwarnings("ignore::kitchensync.reader.timed_stream.OutsideSpan")
def test_frames_are_the_nearest_of_any_time_in_any_order(rec: Any, cooked: tuple[Path, Kitchen]) -> None:
    true_s = session_s(cooked[1], PV_S)
    np.testing.assert_allclose(rec.pv.times, true_s, atol=1e-6)
    rng = np.random.default_rng(1)
    for at_s in (*rng.uniform(-1, 27, 25), 3.0, 3.05, 2.9, *true_s[98:104] + 0.01):
        nearest = int(np.argmin([abs(own - at_s) for own in true_s]))
        assert number_in(luma(rec.pv.at(float(at_s)))) == nearest == rec.pv.index_at(at_s)
    assert number_in(luma(rec.pv[-1])) == len(PV_S) - 1
    assert [number_in(luma(frame)) for frame in rec.pv[30:36:2]] == [30, 32, 34]
    assert [number_in(luma(frame)) for _, frame in rec.pv.between(*true_s[[7, 12]])] == [7, 8, 9, 10, 11]


def test_a_time_outside_the_span_of_a_stream_warns(rec: Any) -> None:
    last_s = float(rec.pv.times[-1])
    assert rec.pv.index_at(last_s + rec.pv.reach_s / 2) == len(rec.pv) - 1
    for ask in (rec.pv.at, rec.pv.index_at, rec.gyroscope.index_at):
        for seconds in (-2.0, 9999.0):
            with pytest.warns(
                OutsideSpan, match=r"has values from .* to .* s, not at .*; using the nearest value"
            ):
                ask(seconds)
    assert rec.at(9999.0).pv is None  # an instant has None instead of a warning


def test_times_of_the_video_are_within_their_bound(rec: Any, cooked: tuple[Path, Kitchen]) -> None:
    true_s = session_s(cooked[1], [(film_host_ns(cooked[1], k) - HOST0_NS) / 1e9 for k in range(FRAMES)])
    off_s = np.abs(rec.gopro.times - true_s)
    assert off_s.max() <= min(rec.gopro.bound_at(at) for at in (3.0, 12.0, 24.0)) < 0.05
    assert rec.alignment.status == "aligned"
    assert rec.alignment.gyroscopes_within_ms < 1.0
    assert rec.alignment.pictures_within_ms / 1e3 == pytest.approx(rec.gopro.bound_at(12.0), rel=0.1)
    assert len(repr(rec.alignment)) < 200
    turning = rec["gopro/gyroscope"]
    at_s = np.linspace(4, 22, 500)
    of_head, of_camera = (np.linalg.norm(stream.sample(at_s), axis=1) for stream in (rec.gyroscope, turning))
    assert np.corrcoef(of_head, of_camera)[0, 1] > 0.95
    assert turning.unit == rec.gyroscope.unit == "rad/s"


@pytest.mark.promise("A recording is read from Python, every stream on one clock")
def test_motion_and_head_agree_with_the_virtual_kitchen(rec: Any, cooked: tuple[Path, Kitchen]) -> None:
    kitchen = cooked[1]
    world_s = np.linspace(1.0, 24.0, 400)
    at_s = session_s(kitchen, world_s)
    true = kitchen.motion.angular_velocity(world_s)
    np.testing.assert_allclose(rec.gyroscope.sample(at_s), true, atol=0.02 * np.abs(true).max())
    head = rec.head.sample(at_s)
    np.testing.assert_allclose(head[:, :3, 3], kitchen.motion.position(world_s), atol=1e-3)
    np.testing.assert_allclose(
        head[:, :3, :3] @ head[:, :3, :3].transpose(0, 2, 1), np.tile(np.eye(3), (400, 1, 1)), atol=1e-9
    )
    assert np.isnan(rec.head.sample([-1.0, 60.0])).all()
    assert np.isnan(rec.gyroscope.sample([-1.0, 60.0])).all()
    assert np.isnan(rec.hands.sample(at_s).left).all(), "no hand was tracked"
    table = rec.gyroscope.to_pandas()
    assert list(table.columns) == ["x (rad/s)", "y (rad/s)", "z (rad/s)"]
    assert len(table) == len(rec.gyroscope)


def test_poses_are_those_of_their_frames(rec: Any) -> None:
    poses = rec.pv.world_from_pv
    assert poses[:, 0, 3].tolist()[:50] == list(range(50))
    assert np.isnan(poses[50]).all(), "not tracked"
    between = rec.at(float(rec.pv.times[10:12].mean())).world_from_pv
    assert between[0, 3] == pytest.approx(10.5, abs=0.01)
    np.testing.assert_allclose(between[:3, :3], np.diag([1.0, -1.0, -1.0]))


def test_unreadable_frames_are_named_and_left_out(rec: Any, cooked: tuple[Path, Kitchen]) -> None:
    np.testing.assert_allclose(rec.depth[0], np.full((512, 512), 0.1, np.float32))
    assert rec.depth.grey(5).max() == 205
    with pytest.raises(Unreadable, match="packet 3"):
        rec.depth[DAMAGED]
    shown = [round(1000 * float(depth.max())) - 100 for _, depth in rec.depth.between(0.0, 26.0)]
    assert shown == [n for n in range(len(DEPTH_S)) if n != DAMAGED]
    assert list(rec.depth.unreadable) == [DAMAGED]
    assert rec.at(float(rec.depth.times[DAMAGED])).depth is None


def test_steps_end_when_they_were_entered(rec: Any, cooked: tuple[Path, Kitchen]) -> None:
    steps = rec.steps
    assert list(steps["step"]) == [STEPS[str(n)]["label"] for n in (1, 2, 3, 4)]
    assert list(steps["done"]) == [True, True, True, False]
    true_s = session_s(cooked[1], list(DONE_S.values()))
    np.testing.assert_allclose(steps["end"][:3], true_s, atol=1e-3 + float(steps["bound_s"].max()))
    assert list(steps["error"]) == [node == WRONG for node in steps["node"]]
    assert steps["errors"][1] == "Technique Error: spilt"
    assert bool(steps["technique"][1])
    assert rec.at(float(true_s[1]) - 0.5).steps == [STEPS["2"]["label"]]
    events = rec.events
    assert list(events["kind"]) == ["recipe", "done", "error", "done", "done"]
    np.testing.assert_allclose(events["session_s"][3], true_s[1], atol=2e-3)


@pytest.mark.promise("A recording is read from Python, every stream on one clock")
def test_ten_instants_a_second_over_all_cameras(rec: Any, cooked: tuple[Path, Kitchen]) -> None:
    true_s = session_s(cooked[1], PV_S)
    instants = list(rec.iterate(hz=10, start=1.0, end=6.0))
    assert [instant.seconds for instant in instants] == pytest.approx(np.arange(1.0, 6.01, 0.1))
    for instant in instants:
        assert number_in(luma(instant.pictures["pv"])) == int(np.argmin(np.abs(true_s - instant.seconds)))
        assert ("gopro" in instant.pictures) == (
            instant.seconds > float(rec.gopro.times[0]) - rec.gopro.reach_s
        )
        assert instant.indices["hololens/pv"] == rec.pv.index_at(instant.seconds)
    gap_s = float(true_s[99:101].mean())
    assert rec.at(gap_s).pv is not None, "three frames are missing, the next is near enough"
    assert rec.at(60.0).pv is None


def _picture_4(stream: Any) -> int | None:
    return number_in(luma(stream[4]))


def _value_5(stream: Any) -> Any:
    return stream[5]


def _instant_20(instants: Any) -> tuple[int, np.ndarray]:
    return len(instants), instants[20].gyroscope


def test_streams_can_be_sent_to_other_processes(rec: Any) -> None:
    instants = rec.instants(hz=5)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_picture_4, (rec.pv,)) == 4
        assert np.array_equal(pool.apply(_value_5, (rec.head,)), rec.head[5])
        count, turning = pool.apply(_instant_20, (instants,))
    assert count == len(instants) == 130
    assert np.array_equal(turning, instants[20].gyroscope)


def test_workers_read_the_same_in_the_same_order(rec: Any) -> None:
    instants = rec.instants(5, start=2, end=6.5, read=["pv", "gyroscope"])
    from_workers = list(instants.in_workers(2))
    assert [values["seconds"] for values in from_workers] == [values["seconds"] for values in instants]
    for values in from_workers[::5]:
        assert np.array_equal(values["pv"], rec.pv.near(values["seconds"]))
        assert np.array_equal(values["gyroscope"], rec.gyroscope.sample(values["seconds"])[0])
    with pytest.raises(ValueError, match="read="):
        rec.instants(5).in_workers(2)
    with pytest.raises(ValueError, match="at least one is needed"):
        instants.in_workers(0)


def test_errors_in_a_worker_are_raised_unchanged(cooked: tuple[Path, Kitchen], tmp_path: Path) -> None:
    shutil.copytree(cooked[0], tmp_path / "take1")
    with ks.open(tmp_path / "take1") as rec:
        instants = rec.instants(5, read=["pv"])
        (tmp_path / "take1").rename(tmp_path / "moved")
        with pytest.raises(NotARecording, match="take1: not a recording"):
            list(instants.in_workers(2))
    script = tmp_path / "unguarded.py"
    script.write_text(
        f"import kitchensync as ks\n\nrec = ks.open({str(cooked[0])!r})\n"
        "list(rec.instants(5, read=['pv']).in_workers(1))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith('call in_workers below `if __name__ == "__main__":`')


@pytest.mark.parametrize(
    "error",
    [NotARecording(Path("a"), "why"), BadChunk(Path("b"), "why"), BadName("c"), BadPacket("pv", "why")],
)
def test_errors_can_be_copied_with_their_message(error: Exception) -> None:
    back = copy.deepcopy(error)
    assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))


def test_steps_of_a_folder_skip_withdrawn_and_unreadable_recordings(
    cooked: tuple[Path, Kitchen], tmp_path: Path
) -> None:
    shutil.copytree(cooked[0], tmp_path / "a-copy")
    for name in ("a", "b", "c"):
        shutil.copytree(cooked[0], tmp_path / name)
        with edit_manifest(tmp_path / name) as manifest:
            manifest |= {"recording": name, "uuid": f"uuid of {name}"}
    with edit_manifest(tmp_path / "a-copy") as manifest:
        manifest["uuid"] = "uuid of a"
    done = CliRunner().invoke(main, ["withdraw", str(tmp_path / "b")])
    assert done.exit_code == 0, done.output
    (log,) = (tmp_path / "c/events").glob("tablet*")
    log.write_bytes(b"{ not a line of ours\n" * 3)
    with pytest.warns(UserWarning, match=r"/c is skipped: "):
        steps = ks.steps(tmp_path)
    assert list(steps["recording"]) == ["a"] * 4
    assert steps.groupby("recipe")["error"].sum().tolist() == [1]


def test_wrong_kinds_are_refused_with_a_message(rec: Any, tmp_path: Path) -> None:
    refused: list[tuple[Any, type[Exception], str]] = [
        (lambda: rec.pv.sample([1.0]), TypeError, "cannot be interpolated"),
        (lambda: rec.gyroscope.points, TypeError, "streams of samples have no points"),
        (lambda: rec.pv["5"], TypeError, "by a number"),
        (lambda: rec.at("5"), TypeError, "number of seconds"),
        (lambda: rec[3], TypeError, "indexed by name"),
        (lambda: rec.pv[10**6], IndexError, f"{len(PV_S)} frames"),
        (lambda: rec["hololens/nothing"], UnknownStream, "hololens/pv"),
        (lambda: rec.nothing, AttributeError, "gopro"),
        (lambda: ks.open(tmp_path), NotARecording, "recording.json"),
        (lambda: ks.open(rec.stored.path.parent), NotARecording, "it holds take1"),
        (lambda: ks.open("s3://lab/take-1"), NotARecording, "copy"),
        (lambda: rec.iterate(hz=0), ValueError, "more than 0"),
    ]
    for act, kind, message in refused:
        with pytest.raises(kind, match=message):
            act()
    assert not hasattr(rec.pv, "values")


def test_repr_and_reading_write_nothing(cooked: tuple[Path, Kitchen]) -> None:
    before = contents(cooked[0])
    with ks.open(cooked[0]) as rec:
        assert "videos aligned, gyroscopes within" in repr(rec)
        assert f"hololens/pv             {len(PV_S)} packets" in repr(rec)
        assert rec._repr_html_().count("<tr>") == 1 + len(rec.streams) + len(rec.bodies)
        assert "frames" in repr(rec.pv)
        true_utc = np.datetime64(UTC0_NS + 5 * 10**9, "ns")
        assert abs(rec.utc(float(session_s(cooked[1], 5.0)[0])) - true_utc) < np.timedelta64(2, "ms")
        assert abs(rec.pv.utc[0] - np.datetime64(UTC0_NS + 10**7, "ns")) < np.timedelta64(2, "ms")
        assert rec.duration == pytest.approx(26.0, abs=0.1)
        list(rec.iterate(hz=1))
    assert contents(cooked[0]) == before


def test_an_instant_has_times_of_its_values_and_instants_read_arrays(rec: Any) -> None:
    instant = rec.at(seconds=9.0)
    assert instant.times["gopro"] == rec.gopro.times[rec.gopro.index_at(9.0)]
    assert instant.times["pv"] == rec.pv.times[instant.indices["hololens/pv"]]
    instants = rec.instants(10, 5.0, 6.0, read=["pv", "gopro/video", "gyroscope", "hands"])
    value = instants[3]
    assert list(value) == ["seconds", "pv", "gopro/video", "gyroscope", "hands"]
    assert value["seconds"] == pytest.approx(5.3)
    assert np.array_equal(value["pv"], rec.pv.at(5.3))
    assert np.array_equal(value["gyroscope"], rec.gyroscope.sample(5.3)[0])
    assert value["hands"].left.shape == (26, 3)
    assert [values["seconds"] for values in instants[::5]] == pytest.approx([5.0, 5.5, 6.0])
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        (from_worker,) = pool.map(instants.__getitem__, [3])
    assert np.array_equal(from_worker["pv"], value["pv"])
    with pytest.raises(UnknownStream):
        rec.instants(10, read=["nothing"])


def test_nan_is_refused_and_far_times_have_no_bound(rec: Any) -> None:
    for ask in (rec.gopro.at, rec.gopro.bound_at, rec.pv.index_at, rec.at):
        with pytest.raises(ValueError, match="not NaN"):
            ask(float("nan"))
    assert np.isnan(rec.gopro.bound_at(-100))
    several = rec.utc([1.0, 2.5])
    assert several.tolist() == [rec.utc(1.0).item(), rec.utc(2.5).item()]
    assert several.dtype == rec.utc(1.0).dtype == np.dtype("<M8[ns]")


def test_nothing_of_a_pause_is_readable(cooked: tuple[Path, Kitchen], tmp_path: Path) -> None:
    shutil.copytree(cooked[0], tmp_path / "take1")
    log = EventLog(tmp_path / "take1", "operator")
    for kind, at_s in (("pause", 9.0), ("resume", 12.5)):
        log.append(kind, host_ns=HOST0_NS + round(at_s * 1e9), uncertainty_ns=0, body={}, op_id=kind)
    hidden = (session_s(cooked[1], 9.0)[0], session_s(cooked[1], 12.5)[0])
    with ks.open(tmp_path / "take1") as rec, ks.open(tmp_path / "take1", with_pauses=True) as with_pauses:
        streams = [rec.pv, rec.gopro, rec.gyroscope, rec.head, rec["gopro/gyroscope"], rec["gopro/audio"]]
        for stream in streams:
            assert not ((stream.times >= hidden[0]) & (stream.times <= hidden[1])).any(), stream
            whole = with_pauses.head if stream is rec.head else with_pauses[stream.name]
            assert ((whole.times >= hidden[0]) & (whole.times <= hidden[1])).any(), stream
        assert not {number_in(luma(frame)) for _, frame in rec.pv.between(8.5, 13)} & set(
            np.flatnonzero((PV_S >= 9.0) & (PV_S <= 12.5)).tolist()
        )
        assert rec.at(10.5).pictures == {}
        assert np.isnan(rec.at(10.5).head).all()


def test_a_video_that_was_not_aligned_has_frames_and_no_times(tmp_path: Path) -> None:
    write_numbered(tmp_path)
    with ks.open(tmp_path / "take1") as rec:
        assert rec.gopro[0].shape == (180, 320, 3)
        assert len(rec.gopro.media_times) == FRAMES
        assert rec.alignment.status == "not_done"
        for read in (
            lambda: rec.gopro.times,
            lambda: rec.gopro.at(5.0),
            lambda: rec["gopro/gyroscope"].times,
        ):
            with pytest.raises(NotKnown, match="kitchensync sync"):
                read()
        assert rec.at(5.0).gopro is None
        assert "gopro/video" in repr(rec)


def test_a_gyroscope_of_unknown_unit_names_the_command_to_run(tmp_path: Path) -> None:
    write_numbered(tmp_path)
    with (
        ks.open(tmp_path / "take1") as rec,
        pytest.raises(NotKnown, match="its unit is unknown; run `kitchensync sync`"),
    ):
        rec.gyroscope.read(0)
    shutil.rmtree(tmp_path / "take1" / "gopro")
    with ks.open(tmp_path / "take1") as rec, pytest.raises(NotKnown, match="kitchensync gopro import"):
        rec.gyroscope.read(0)


def test_the_bound_of_a_step_includes_that_of_its_inputs(
    cooked: tuple[Path, Kitchen], tmp_path: Path
) -> None:
    shutil.copytree(cooked[0], tmp_path / "take1")
    shutil.rmtree(tmp_path / "take1" / "events")
    with ks.open(cooked[0]) as rec:
        (recipe,) = [event["body"] for event in rec.stored.events() if event["kind"] == "recipe"]
        clock_s = rec.clock.bound_s
    log = EventLog(tmp_path / "take1", "tablet")
    log.append("recipe", host_ns=HOST0_NS, uncertainty_ns=0, body=recipe, op_id="recipe")
    wrong = {"node": 2, "categories": [7], "description": ""}
    error = {"error_id": "e1", "device": "t", "fields": wrong}
    log.append("error", host_ns=HOST0_NS + 10**9, uncertainty_ns=0, body=error, op_id="e1")
    for node, uncertainty_ns in ((1, 5_000_000), (2, 1_000_000)):
        done = {"node": node, "device": "t"}
        at_ns = HOST0_NS + node * 4 * 10**9
        log.append("done", host_ns=at_ns, uncertainty_ns=uncertainty_ns, body=done, op_id=f"op{node}")
        mark = {"text": "at the same moment"}
        log.append("mark", host_ns=at_ns, uncertainty_ns=0, body=mark, op_id=f"mark{node}")
    with ks.open(tmp_path / "take1") as rec:
        # The second step begins where the first ended, so it has the same bound.
        np.testing.assert_allclose(rec.steps["bound_s"][:2], [clock_s + 0.005] * 2, atol=1e-4)
        assert ":" not in rec.steps["errors"][1]


def test_two_chapters_are_one_video(tmp_path: Path) -> None:
    video = film(tmp_path / "take" / "left", 150, 90, seed=8)
    devices = {"left": {"kind": "gopro"}}
    manifest = {"schema": "recording/1", "recording": "take", "state": "complete", "files": {}}
    write_json(tmp_path / "take" / "recording.json", {**manifest, "devices": devices, "streams": {}})
    assert len(video.chapters) == 2
    with ks.open(tmp_path / "take") as rec:
        assert rec.gopro is rec.left
        assert len(rec.left) == 150
        for number in (149, 3, 90, 89, 91):
            with timeline_of(rec, "left").clip.pictures() as pictures:
                assert np.array_equal(rec.left[number], pictures.number(number).rgb)
        assert rec.left.media_times[119] == pytest.approx(119 * 1001 / 30000)
        sound = rec["left/audio"]
        assert sound[3:7].shape == (sound[0].shape[0], sum(sound[k].shape[1] for k in range(3, 7)))
        assert np.array_equal(sound[3:7][:, :10], sound[3][:, :10])


def test_an_adopted_video_is_read_on_its_own_time(tmp_path: Path) -> None:
    video = film(tmp_path / "card", 60, 60, seed=3)
    args = ["adopt", "found", str(video.chapters[0].path), "--data", str(tmp_path / "data")]
    done = CliRunner().invoke(main, args)
    assert done.exit_code == 0, done.output
    with ks.open(tmp_path / "data" / "found") as rec:
        assert len(rec.gopro) == 60
        np.testing.assert_allclose(rec.gopro.times, np.arange(60) * 1001 / 30000, atol=1e-9)
        assert rec.gopro.at(1.0).ndim == 3
        assert rec.duration == pytest.approx(59 * 1001 / 30000)
