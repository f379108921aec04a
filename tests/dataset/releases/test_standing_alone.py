"""A data set without this package: what `verify.py` finds of planted faults, and what `load.py` reads."""

from __future__ import annotations

import importlib.util
import json
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from cooked_recording import copied, write_cooked
from furnished import write_tables
from numbered_pictures import number_in
from numbered_recording import DEPTH_S, FRAME_S, HEIGHT, PV_S, WIDTH, film_host_ns
from small_recordings import FRAMES, HOST0_NS, SECONDS, UTC0_NS
from typed_commands import answer

import kitchensync as ks
from kitchensync.dataset.source.sums import hashes_of, sums_of
from kitchensync.reader.cameras.recorded import look_up_table
from kitchensync.storage.geometry.clouds import DepthCamera, moved
from kitchensync.storage.recording import open_recording
from kitchensync.virtual_kitchen.headset.cameras import AHAT, constants
from kitchensync.virtual_kitchen.headset.client_configuration import VideoFormat
from kitchensync.virtual_kitchen.headset.streams.pv_stream import constants as pv_constants
from kitchensync.virtual_kitchen.kitchen import Kitchen

pytestmark = pytest.mark.slow

run = partial(answer, code=None)
SYNC = "captain_cook_4d/hololens/sync"
MOTION = "captain_cook_4d/gopro/motion/1_2_gyroscope.npz"
FILM = "captain_cook_4d/gopro/resolution_360p/1_2_360p.mp4"
TIMES = "captain_cook_4d/gopro/resolution_360p/1_2_360p_frames.npz"
TURNING = f"{SYNC}/imu_gyroscope/1_2_imu_gyroscope.npz"
POSES = f"{SYNC}/pv_pose/1_2_pv_pose.npz"
SPATIAL = f"{SYNC}/spatial_pose/1_2_spatial.npz"
MS = 1_000_000
Arrays = dict[str, np.ndarray]


def without_depth(manifest: dict[str, Any]) -> None:
    """Take2 has no depth, and says how often its hands come."""
    del manifest["streams"]["hololens/depth_ahat"]
    manifest["streams"]["hololens/spatial_input"]["nominal_hz"] = 30.0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Kitchen]:
    """A released data set `out` beside its recordings: take1 has some depth, take2 none."""
    root = tmp_path_factory.mktemp("alone")
    data = root / "data"
    kitchen = write_cooked(data)
    write_tables(data / "take1", "depth_ahat", constants(AHAT))
    write_tables(data / "take1", "pv", pv_constants(VideoFormat(WIDTH, HEIGHT, 30)))
    take2 = copied(data, "take2", without_depth)
    shutil.rmtree(take2 / "hololens/depth_ahat")
    run("sync", take2, "--jobs", "1")
    said = run("release", "captaincook4d", data, "--media", "360p,hololens", "--out", root / "out")
    assert said["status"] == "PASS"
    return root, kitchen


@pytest.fixture
def out(made: tuple[Path, Kitchen], tmp_path: Path) -> Path:
    shutil.copytree(made[0] / "out", tmp_path / "out")
    return tmp_path / "out"


def verified(out: Path, *more: str, recording: str = "1_2") -> tuple[int, dict[str, Any]]:
    """Run `verify.py` as a stranger would: no package of ours can be imported."""
    command = [sys.executable, "-I", str(out / "verify.py"), "--recording", recording, "--json", *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def verified_here(
    out: Path, patch: pytest.MonkeyPatch, said: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, Any]]:
    """Run it in this process."""
    patch.setattr(sys, "argv", [str(out / "verify.py"), "--recording", "1_2", "--json"])
    code = runpy.run_path(str(out / "verify.py"), run_name="verify")["main"]()
    return code, json.loads(said.readouterr().out)


def edited(out: Path, name: str, change: Callable[[Arrays], None]) -> None:
    with np.load(out / name, allow_pickle=False) as file:
        arrays = dict(file)
    change(arrays)
    np.savez(out / name, **arrays)


def signed_anew(out: Path) -> None:
    """Let the checksums agree with what was changed: only what the files say can tell."""
    names = [path.relative_to(out).as_posix() for path in sorted(out.rglob("*")) if path.is_file()]
    (out / "SHA256SUMS").write_text(sums_of(hashes_of(out, (one for one in names if one != "SHA256SUMS"))))


@pytest.mark.promise("A data set is released, checked, and equal to the published one")
def test_an_untouched_release_passes_and_needs_nothing_of_ours(out: Path) -> None:
    code, said = verified(out)
    assert (code, said["status"], said["corrupt"]) == (0, "PASS", [])
    (one,) = said["recordings"]
    assert (one["recording"], one["reasons"]) == ("1_2", [])
    (pair,) = one["pairs"]
    assert pair["status"] == "aligned"
    assert pair["off_ms"] < 0.1
    assert 0 < pair["bound95_ms"] < 1
    for program in ("load.py", "verify.py", "download.py"):
        text = (out / program).read_text()
        assert "kitchensync." not in text.replace("kitchensync.jsonl", "")
    checked = run("release", "check", out)
    assert (checked["status"], checked["differences"]) == ("WARN", [])
    reasons = verified(out, recording="1_1")[1]["recordings"][0]["reasons"]
    assert checked["warnings"] == [f"1_1: {reason}" for reason in reasons]


def shift(name: str, ms: float) -> Callable[[Path], None]:
    """Move the times of a film or its motion."""

    def change(out: Path) -> None:
        column = "capture_ns" if name == TIMES else "sample_capture_ns"
        edited(out, name, lambda arrays: arrays.update({column: arrays[column] + round(ms * MS)}))

    return change


def both(*changes: Callable[[Path], None]) -> Callable[[Path], None]:
    def change(out: Path) -> None:
        for one in changes:
            one(out)

    return change


def drifting(out: Path) -> None:
    """A camera's clock that runs 300 ppm too fast, everywhere it is told."""
    for name, column in ((TIMES, "capture_ns"), (MOTION, "sample_capture_ns")):

        def stretch(arrays: Arrays, column: str = column) -> None:
            since = arrays[column] - HOST0_NS
            arrays[column] = HOST0_NS + np.rint(since * 1.0003).astype(np.int64)

        edited(out, name, stretch)


def edit(name: str, change: Callable[[Arrays], None]) -> Callable[[Path], None]:
    return lambda out: edited(out, name, change)


def keep(arrays: Arrays, rows: np.ndarray) -> None:
    count = len(rows)
    for name, values in arrays.items():
        if values.ndim and len(values) == count:
            arrays[name] = values[rows]


def hole(first_s: float, last_s: float, column: str = "sample_capture_ns") -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        at_s = (arrays[column] - HOST0_NS) / 1e9
        keep(arrays, (at_s < first_s) | (at_s > last_s))

    return change


def lose_tracking(arrays: Arrays) -> None:
    at_s = (arrays["capture_ns"] - HOST0_NS) / 1e9
    lost = (at_s > 8) & (at_s < 11)
    arrays["head_tracked"][lost] = False
    arrays["pose"][lost] = np.nan


def swap_axes(arrays: Arrays) -> None:
    arrays["xyz"] = arrays["xyz"][:, [1, 0, 2]]


def in_degrees(arrays: Arrays) -> None:
    arrays["xyz"] = np.rad2deg(arrays["xyz"])


def turn_poses(arrays: Arrays) -> None:
    arrays["pose"] = np.swapaxes(arrays["pose"], 1, 2)


def cut_film(out: Path) -> None:
    """Leave the last ten pictures of the film out."""
    with av.open(str(out / FILM)) as source, av.open(str(out / "cut.mp4"), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        packets = [packet for packet in source.demux(video=0) if packet.size]
        for packet in sorted(packets, key=lambda one: one.dts)[:-10]:
            packet.stream = stream
            target.mux(packet)
    (out / "cut.mp4").replace(out / FILM)


def wrong_table(out: Path) -> None:
    path = out / "annotation_csv/step_annotations.csv"
    lines = path.read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if line.startswith('"1_2"'))
    fields = lines[at].split(",")
    fields[2], fields[3] = fields[3], fields[2]
    path.write_text("".join([*lines[:at], ",".join(fields), *lines[at + 1 :]]))


def bent(period_s: float, ms: float) -> Callable[[Path], None]:
    """A clock that swings, everywhere it is told."""

    def change(out: Path) -> None:
        for name, column in ((TIMES, "capture_ns"), (MOTION, "sample_capture_ns")):

            def swing(arrays: Arrays, column: str = column) -> None:
                at_s = (arrays[column] - HOST0_NS) / 1e9
                arrays[column] = arrays[column] + np.rint(
                    ms * MS * np.sin(2 * np.pi * at_s / period_s)
                ).astype(np.int64)

            edited(out, name, swing)

    return change


def late_from(share: float, ms: float, *, names: tuple[str, ...] = (TIMES, MOTION)) -> Callable[[Path], None]:
    """From a part of the film on its times are late."""

    def change(out: Path) -> None:
        for name in names:
            column = "capture_ns" if name == TIMES else "sample_capture_ns"

            def move(arrays: Arrays, column: str = column) -> None:
                arrays[column] = arrays[column].copy()
                arrays[column][int(share * len(arrays[column])) :] += round(ms * MS)

            edited(out, name, move)

    return change


def relinked(change: Callable[[dict[str, str]], None]) -> Callable[[Path], None]:
    """Change what the links of the recording say, and what they no longer name is gone."""

    def plant(out: Path) -> None:
        path = out / "metadata/download_links.json"
        links = json.loads(path.read_text())
        before = set(links["1_2"].values())
        change(links["1_2"])
        path.write_text(json.dumps(links))
        for gone in before - set(links["1_2"].values()):
            (out / gone).unlink()

    return plant


def unknown(first: float, last: float) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        count = len(arrays["capture_ns"])
        arrays["capture_ns"][int(first * count) : int(last * count)] = np.iinfo(np.int64).min

    return change


def flip(name: str) -> Callable[[Path], None]:
    def change(out: Path) -> None:
        content = bytearray((out / name).read_bytes())
        content[len(content) // 2] ^= 0xFF
        (out / name).write_bytes(content)

    return change


FAULTS: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "film shifted by 40 ms": (both(shift(TIMES, 40), shift(MOTION, 40)), "FAIL", "40."),
    "film shifted by 1 ms": (both(shift(TIMES, 1), shift(MOTION, 1)), "FAIL", "ms from where"),
    "film shifted by -7 s": (both(shift(TIMES, -7000), shift(MOTION, -7000)), "FAIL", "ms from where"),
    "pictures shifted beside their motion": (shift(TIMES, 33), "FAIL", "33.0 ms from those"),
    "another drift": (drifting, "FAIL", "ms from where"),
    "camera's axes exchanged": (edit(MOTION, swap_axes), "FAIL", "two are exchanged"),
    "headset's axes exchanged": (edit(TURNING, swap_axes), "FAIL", "two are exchanged"),
    "degrees called radians": (edit(MOTION, in_degrees), "FAIL", "times as fast"),
    "poses transposed": (edit(POSES, turn_poses), "FAIL", "pose"),
    "times of another column": (
        edit(SPATIAL, lambda a: a.update(capture_ns=a["sample_capture_ns"] + 1)), "FAIL", "table of frames",
    ),
    "times that fall": (
        edit(TIMES, lambda a: a.update(capture_ns=a["capture_ns"][::-1].copy())), "FAIL", "does not rise",
    ),
    "start and end exchanged": (wrong_table, "FAIL", "does not say what"),
    "pictures cut off": (cut_film, "FAIL", f"{FRAMES - 10} pictures"),
    "no array at all": (lambda out: (out / SPATIAL).write_bytes(b"PK") and None, "FAIL", "cannot be read"),
    "tracking lost": (edit(POSES, lose_tracking), "WARN", "tracking was lost at 8.0 to 11.0 s"),
    "a clock that swings by 30 ms": (bent(20, 30), "FAIL", "from where its times say"),
    "a clock that swings by 10 ms": (bent(8, 10), "FAIL", "from where its times say"),
    "the last quarter late": (late_from(0.75, 40), "FAIL", "where its times say"),
    "the last 40 % a second late": (late_from(0.6, 1000), "FAIL", "where its times say"),
    "the last pictures late beside their motion": (
        late_from(0.6, 500, names=(TIMES,)), "FAIL", "500.0 ms from those",
    ),
    "no gyroscope of the camera": (
        relinked(lambda links: links.pop("gopro_gyroscope_npz") and None), "WARN", "not proven",
    ),
    "no gyroscope of the headset": (
        relinked(lambda links: links.pop("hololens_sync_imu_gyroscope_npz") and None), "WARN", "not proven",
    ),
    "no times of the film": (
        relinked(lambda links: links.pop("gopro_360p_frames_npz") and None), "WARN", "nothing tells when",
    ),
    "no film": (relinked(lambda links: links.pop("gopro_360p") and None), "WARN", "and no film"),
    "no table of frames": (
        relinked(lambda links: links.pop("hololens_sync_frames_npz") and None), "WARN", "coverage: not proven",
    ),
    "pictures without a time": (edit(TIMES, unknown(0.4, 0.5)), "FAIL", "are not those of the film's table"),
    "a bound of an hour": (
        edit(MOTION, lambda a: a.update(gyroscope_bound_ns=np.full(3, 10**13))), "WARN", "promises nothing",
    ),
    "a byte of an array": (flip(SPATIAL), "FAIL", "cannot be read"),
    "another rate": (edit(TIMES, lambda a: a.update(fps=np.array([25, 1]))), "FAIL", "taken at another rate"),
    "no rate": (edit(TIMES, lambda a: a.__delitem__("fps")), "FAIL", "it has no fps"),
    "millimetres called metres": (
        edit(POSES, lambda a: np.multiply(a["pose"][:, 3, :3], 1000, out=a["pose"][:, 3, :3])), "FAIL", "m away",
    ),
    "a head that is nowhere": (
        edit(SPATIAL, lambda a: a["head_position"].__setitem__(slice(None), np.nan)), "FAIL", "is none in a room",
    ),
    "a link out of the folder": (
        relinked(lambda links: links.update(gopro_720p="../../../etc/passwd")), "FAIL", "leads out of the data set",
    ),
    "hands thinned out": (edit(SPATIAL, lambda a: keep(a, np.arange(len(a["frame"])) % 70 == 0)), "FAIL", "covers 0"),
    "a hole in the hands": (edit(SPATIAL, hole(10, 13.5)), "WARN", "10.0 to 13.5 s"),
    "most of the hands missing": (edit(SPATIAL, hole(3, 22)), "FAIL", "covers 2"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_its_checksums_agree_with_is_found(
    fault: str, out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant, status, words = FAULTS[fault]
    plant(out)
    signed_anew(out)
    code, said = verified_here(out, monkeypatch, capsys)
    (one,) = said["recordings"]
    assert (one["status"], said["corrupt"]) == (status, []), one
    assert code == (status == "FAIL")
    assert any(words in reason for reason in one["reasons"]), one["reasons"]


@pytest.mark.parametrize("fault", ["film shifted by 40 ms", "most of the hands missing", "tracking lost"])
def test_release_check_reports_what_verify_reports_and_runs_no_file_of_the_folder(
    fault: str, out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    FAULTS[fault][0](out)
    signed_anew(out)
    (one,) = verified_here(out, monkeypatch, capsys)[1]["recordings"]
    (out / "verify.py").write_text("raise SystemExit('it was executed')\n")
    signed_anew(out)
    said = run("release", "check", out)
    reasons = [each["got"] for each in said["differences"] if each["where"] == "1_2"]
    reasons += [line.removeprefix("1_2: ") for line in said["warnings"]]
    assert set(one["reasons"]) <= set(reasons)


def test_flipped_bytes_and_missing_files_are_named_and_what_was_not_fetched_may_be_left_out(
    out: Path,
) -> None:
    content = bytearray((out / FILM).read_bytes())
    content[len(content) // 2] ^= 1
    (out / FILM).write_bytes(content)
    (out / POSES).unlink()
    code, said = verified(out)
    assert code == 1
    assert {one["file"]: one["why"] for one in said["corrupt"]} == {
        FILM: "is not what SHA256SUMS says",
        POSES: "is not here",
    }
    code, said = verified(out, "--partial")
    assert [one["file"] for one in said["corrupt"]] == [FILM]


def test_what_is_no_data_set_is_said_in_one_line(out: Path) -> None:
    (out / "SHA256SUMS").unlink()
    done = subprocess.run([sys.executable, out / "verify.py"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("verify.py: ")
    assert done.stderr.count("\n") == 1


def test_a_folder_without_a_data_set_is_told_by_the_loader(loaded: Any, tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="holds no data set"):
        type(loaded)(tmp_path)


def opened(place: Path) -> Any:
    """Open a data set with the program that is in it."""
    spec = importlib.util.spec_from_file_location("load_of_a_release", place / "load.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.open_data_set()


@pytest.fixture(scope="module")
def loaded(made: tuple[Path, Kitchen]) -> Any:
    return opened(made[0] / "out")


def test_films_and_frames_are_those_that_ks_open_gives(made: tuple[Path, Kitchen], loaded: Any) -> None:
    rec = loaded["1_1"]
    assert loaded.recordings == ["1_1", "1_2"]
    with av.open(str(made[0] / "out/captain_cook_4d/gopro/resolution_360p/1_1_360p.mp4")) as film:
        pictures = [one.to_ndarray(format="rgb24") for one in film.decode(video=0)]
    for k in (0, 7, 8, 300, 5, FRAMES - 1):
        assert np.array_equal(rec.film[k], pictures[k])
        assert np.array_equal(rec.film.at(k * FRAME_S), pictures[k])
        true_ns = film_host_ns(made[1], k)
        assert abs(rec.film.capture_ns[k] - true_ns) <= rec.film.bound_ns[k]
    with ks.open(made[0] / "data/take1") as own:
        assert np.array_equal(rec.film.capture_ns, own.gopro.times_ns)
        assert np.abs(rec.pv.capture_ns - own.pv.times_ns).max() < 1000
        for k in (0, 44, 45, 12, len(PV_S) - 1):
            assert number_in(rec.pv[k].mean(axis=2)) == k
        np.testing.assert_allclose(
            rec.pv.world_from_camera(7), own.pv.world_from_camera[7], atol=1e-6, equal_nan=True
        )
        lens = own.pv.lens(7)
        told = rec.pv.intrinsics(7)
        assert told["matrix"][[0, 1, 0, 1], [0, 1, 2, 2]].tolist() == [lens.fx, lens.fy, lens.cx, lens.cy]
        assert told["distortion"].tolist() == [lens.k1, lens.k2, lens.p1, lens.p2, lens.k3]
        second = 12.0
        assert abs(rec.utc(second) - (np.datetime64(UTC0_NS + rec.capture_ns(second) - HOST0_NS, "ns"))) < 1


def test_samples_poses_and_depth_are_those_that_ks_open_gives(
    made: tuple[Path, Kitchen], loaded: Any
) -> None:
    rec = loaded["1_1"]
    with ks.open(made[0] / "data/take1") as own:
        assert np.array_equal(rec.gyroscope.values, own.gyroscope.values)
        assert np.abs(rec.gyroscope.capture_ns - own.gyroscope.times_ns).max() < 1000
        assert np.allclose(rec.camera_gyroscope.values, own["gopro/gyroscope"].values)
        at_s = np.linspace(3, 18, 200)
        at_ns = [rec.capture_ns(at) for at in at_s]
        expected = [np.interp(at_ns, own.gyroscope.times_ns, one) for one in own.gyroscope.values.T]
        np.testing.assert_allclose(rec.gyroscope.sample(at_s), np.transpose(expected), atol=1e-3)
        head = rec.head.at(9.0)["position"]
        k = int(np.argmin(np.abs(own.head.times_ns - rec.capture_ns(9.0))))
        assert np.abs(head - own.head.values[k][:3, 3]).max() < 0.02
        assert len(loaded.joints) == rec.hands.at(9.0)["left"].shape[0] == 26
        numbers = [int(rec.depth[k][0, 0] * 1000 + 0.5) - 100 for k in range(len(rec.depth))]
        assert set(numbers) == set(range(len(DEPTH_S))) - {3}
        with open_recording(made[0] / "data/take1") as stored:
            camera = DepthCamera(look_up_table(stored, "hololens/depth_ahat"))
            for k in (0, 4):
                expected = moved(
                    own.depth.world_from_camera[numbers[k]],
                    camera.points(np.full((512, 512), 100 + numbers[k], np.uint16))[0],
                )
                np.testing.assert_allclose(rec.depth.points(k), expected, atol=1e-5)
    with pytest.raises(KeyError, match="has no hololens_sync_imu_magnetometer"):
        _ = rec.magnetometer
    together = rec.at(6.0)
    assert {"film", "pv", "depth", "gyroscope", "head"} <= together.keys()
    assert rec.steps[1]["errors"][0]["tag"]


def test_the_film_is_asked_for_by_its_own_seconds_also_where_it_has_no_time(out: Path) -> None:
    edited(out, TIMES, unknown(100 / FRAMES, 500 / FRAMES))
    rec = opened(out)["1_2"]
    for k in (50, 200, 350, 499, 500):
        assert rec.film.index_at(k * FRAME_S) == rec.film.index_at((k + 0.7) * FRAME_S) == k
    assert rec.gyroscope.index_at(5.0) >= 0
    for beyond in (-0.5, FRAMES * FRAME_S + 0.1):
        with pytest.raises(KeyError, match="its film is from 0 to"):
            rec.film.at(beyond)
    for ask in (rec.film.at, rec.gyroscope.at, rec.capture_ns, rec.at):
        with pytest.raises(ValueError, match="a second of the film"):
            ask(float("nan"))
    assert rec.utc(-2.0) < rec.utc(0.0) < rec.utc(60.0)


def test_what_was_not_fetched_or_not_released_is_left_out(made: tuple[Path, Kitchen], tmp_path: Path) -> None:
    said = run(
        "release", "captaincook4d", made[0] / "data/take2", "--media", "hololens", "--out", tmp_path / "set"
    )
    assert said["status"] == "PASS"
    rec = opened(tmp_path / "set")["1_1"]
    assert {"pv", "gyroscope", "head"} <= rec.at(5.0).keys()
    assert rec.utc(1.0) - rec.utc(0.0) == np.timedelta64(1, "s")
    with pytest.raises(KeyError, match="has no small film"):
        _ = rec.film
    (tmp_path / "set" / rec.links["hololens_sync_pv_video"]).unlink()
    again = opened(tmp_path / "set")["1_1"]
    assert "pv" not in again.at(5.0)
    with pytest.raises(KeyError, match="is not here"):
        _ = again.pv
    text = (tmp_path / "set" / "README.md").read_text()
    assert "rec.film" not in text
    assert "rec.gyroscope.sample" in text
    assert verified(tmp_path / "set", "--partial", recording="1_1")[1]["status"] in ("PASS", "WARN")


def test_every_array_is_explained(made: tuple[Path, Kitchen]) -> None:
    out = made[0] / "out"
    explained = json.loads((out / "metadata/columns.json").read_text())
    assert len(explained["joints"]) == 26
    for path in sorted((out / "captain_cook_4d").rglob("*.npz")):
        with np.load(path, allow_pickle=False) as arrays:
            for name in arrays.files:
                sides = [name.removeprefix(side) for side in explained["hands"] if name.startswith(side)]
                numbered = [prefix for prefix in ("depth-", "ab-") if name.startswith(prefix)]
                (key,) = sides or numbered or [name]
                assert explained["columns"][key]["meaning"], (path, name)
    told = json.loads((out / "calibration/1_1.json").read_text())
    assert told["clock"]["utc_minus_capture_ns"] == UTC0_NS - HOST0_NS
    with np.load(out / "calibration/1_1_depth_ahat.npz") as tables:
        assert set(tables.files) == {*told["sensors"]["depth_ahat"], "made_of"}


def test_the_readme_and_the_facts_say_how_far_films_may_be_off(made: tuple[Path, Kitchen]) -> None:
    out = made[0] / "out"
    lines = [json.loads(line) for line in (out / "kitchensync.jsonl").read_text().splitlines()]
    facts = {one["recording_id"]: one for one in lines if one["kind"] == "recording"}
    with ks.open(made[0] / "data/take1") as own:
        within = own.alignment.gyroscopes_within_ms
    (film,) = facts["1_1"]["alignment"]
    assert film["gyroscopes_within_ms"] == pytest.approx(within)
    assert film["said"].startswith(f"gyroscopes within {within:.2f} ms; pictures within")
    text = (out / "README.md").read_text()
    assert f"by both gyroscopes, within {within:.2f} ms; pictures within 30 ms" in text
    streams = {one["stream"]: one for one in facts["1_1"]["coverage"]}
    assert streams["gopro"]["coverage"] == 1.0


def test_the_example_of_the_readme_runs(made: tuple[Path, Kitchen]) -> None:
    out = made[0] / "out"
    text = (out / "README.md").read_text()
    code = text[text.index("    from load import") :].split("\n\nSteps that")[0]
    lines = "\n".join(line.removeprefix("    ") for line in code.splitlines())
    done = subprocess.run(
        [sys.executable, "-c", lines + "\nassert len(both) == 2 and picture.shape[2] == 3"],
        cwd=out, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert SECONDS > 20


def test_errors_are_rows_in_seconds_of_the_film(made: tuple[Path, Kitchen], loaded: Any) -> None:
    with ks.open(made[0] / "data" / "take1") as rec:
        (true,) = rec.error_rows
        touched_s = rec.gopro.times
    (row,) = loaded["1_1"].errors
    shown = float(touched_s[round(row["reported_s"] / FRAME_S)])
    assert shown == pytest.approx(true["reported_s"], abs=FRAME_S)
    same = ("error_id", "node", "step", "categories", "description", "planned", "intent", "at_s", "source")
    assert {name: row[name] for name in same} == {name: true[name] for name in same}
    lines = (made[0] / "out" / "kitchensync.jsonl").read_text().splitlines()
    (error,) = (
        e for line in map(json.loads, lines) if line["recording_id"] == "1_1" for e in line.get("errors", ())
    )
    assert (error["reported_s"], error["description"]) == (row["reported_s"], "spilt")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"recording": "1_2"', '"recording": "9_9"', "there is no recording 9_9"),
        ('"at_s": null', '"at_s": -4.0', "is not in the film"),
        ('"at_s": null, "end_s": null', '"at_s": 5.0, "end_s": 4.0', "ends before it begins"),
        ('"at_s": null, ', "", "KeyError"),
    ],
)
def test_a_row_of_an_error_that_cannot_be_is_named(out: Path, old: str, new: str, words: str) -> None:
    text = (out / "errors.jsonl").read_text()
    assert old in text
    (out / "errors.jsonl").write_text(text.replace(old, new))
    signed_anew(out)
    code, said = verified(out)
    assert (code, {one["file"] for one in said["corrupt"]}) == (1, {"errors.jsonl"})
    assert words in said["corrupt"][0]["why"]
    assert any(
        one["file"] == "errors.jsonl" and words in one["got"]
        for one in run("release", "check", out)["differences"]
    )
