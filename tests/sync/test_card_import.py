"""Cards of several cameras, mixed: every take goes to its recording by serial, clock and motion, or is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from click.testing import CliRunner
from filmed_motion import UTC0_S, recording, serial, write_gyroscope
from films import film
from strange_films import film_maker

from kitchensync.cli import main
from kitchensync.sensors.errors import DownloadFailed
from kitchensync.sensors.gopro.files.memory_card import copy_verified, scan_card
from kitchensync.storage.manifest import write_json
from kitchensync.storage.timeline.acoustic_slate import slate_wave
from kitchensync.storage.verify import verify
from kitchensync.sync.align.slate import find_slate
from kitchensync.sync.align.sound import Sound
from kitchensync.sync.memory_cards.match import propose
from kitchensync.virtual_kitchen.gopro.files.sensors import Instruments

FRAMES = 480
CAMERA_A, CAMERA_B, FOREIGN = 5, 6, 77
SOUND_HZ = 48_000


def shoot(
    folder: Path, camera: int, number: int, start_s: float, motion: int, chapters: int | None = None
) -> list[Path]:
    """One take on a card, begun 2 s after its recording."""
    made = film(
        folder, FRAMES, chapters, seed=camera, number=number, model="hero12", gps=False, motion_seed=motion,
        local_s=UTC0_S + start_s + 7200.3, start_world_s=2.0, instruments=Instruments(),
    )  # fmt: skip
    return [chapter.path for chapter in made.chapters]


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four recordings of two cameras, and cards with five takes: one of another house, one cut short."""
    root = tmp_path_factory.mktemp("evening")
    data, card = root / "data", root / "cards"
    # Two of camera A a minute apart: the clock allows both, the motion decides.
    recording(data, "a-1", CAMERA_A, 0.0, motion=51)
    recording(data, "a-2", CAMERA_A, 60.0, motion=52)
    recording(data, "b-1", CAMERA_B, 0.0, motion=None)
    recording(data, "b-2", CAMERA_B, 7200.0, motion=None)
    shoot(card / "one" / "100GOPRO", CAMERA_A, 1, 2.0, motion=51, chapters=240)
    shoot(card / "one" / "100GOPRO", CAMERA_A, 2, 30.0, motion=52)
    shoot(card / "one" / "101GOPRO", FOREIGN, 1, 2.0, motion=53)
    shoot(card / "two" / "100GOPRO", CAMERA_B, 1, 3.0, motion=54)
    cut = shoot(card / "two" / "100GOPRO", CAMERA_B, 2, 7203.0, motion=55)[0]
    cut.write_bytes(cut.read_bytes()[:-200_000])
    return root


@pytest.mark.slow
def test_mixed_cards_go_to_the_right_places(evening: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(evening / "data", data)
    before = {path: path.stat().st_mtime_ns for path in (evening / "cards").rglob("*.MP4")}
    done = CliRunner().invoke(
        main, ["gopro", "import", str(evening / "cards"), "--match", str(data), "--yes", "--json"]
    )
    assert done.exit_code == 1
    answer = json.loads(done.stdout)
    placed = {Path(one["recording"]).name: one["files"] for one in answer["imported"]}
    assert placed == {
        "a-1": ["GH010001.MP4", "GH020001.MP4"],
        "a-2": ["GH010002.MP4"],
        "b-1": ["GH010001.MP4"],
    }
    assert [one["files"][0].rpartition("/")[2] for one in answer["unreadable"]] == ["GH010002.MP4"]
    assert "moov" in answer["unreadable"][0]["why"]
    refused = [one for one in answer["proposals"] if one["recording"] is None]
    assert [serial(FOREIGN) in one["problem"] for one in refused] == [True]
    assert "2 not imported" in done.stderr
    aligned = next(one for one in answer["proposals"] if (one["recording"] or "").endswith("a-2"))
    assert "motion: aligned" in aligned["evidence"] or "motion: check" in aligned["evidence"]
    assert {path: path.stat().st_mtime_ns for path in before} == before
    for name, files in placed.items():
        checked = verify(data / name)["streams"]
        for file in files:
            assert checked[f"gopro/{file}"]["received"] == checked[f"gopro/{file}"]["stored"] > 0
    again = CliRunner().invoke(
        main, ["gopro", "import", str(evening / "cards"), "--match", str(data), "--yes"]
    )
    assert "GH010002.MP4 -> " in again.stdout


def test_nothing_is_moved_before_it_is_shown(evening: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(evening / "data", data)
    done = CliRunner().invoke(
        main, ["gopro", "import", str(evening / "cards"), "--match", str(data)], input="n\n"
    )
    assert "copy 3 clips?" in done.stdout
    assert not list(data.rglob("*.MP4"))
    assert CliRunner().invoke(main, ["gopro", "import", str(evening / "cards")]).exit_code == 2


def test_a_chosen_recording_is_told_how_far_away_the_clock_is(evening: Path) -> None:
    takes, _ = scan_card(evening / "cards" / "two")
    [proposal] = propose(takes, [evening / "data" / "b-1"], chosen=True)
    assert [line[:8] for line in proposal.evidence if line.startswith("clock")] == ["clock: +"]
    assert "clock: +0.0" not in " ".join(proposal.evidence)


@pytest.mark.parametrize("by_s", [2 * 86_400, -2 * 86_400])
def test_a_recording_whose_computer_had_its_clock_set_is_found(
    evening: Path, tmp_path: Path, by_s: int
) -> None:
    """The laptop was two days off until a network told it; the camera's clock was right all the time."""
    path = recording(tmp_path, "b-1", CAMERA_B, 0.0, motion=None, seconds=30.0)
    manifest = json.loads((path / "recording.json").read_text())
    true = [{"host_ns": (1000 + s) * 10**9, "utc_ns": round((UTC0_S + s) * 1e9)} for s in (0, 12, 13, 30)]
    wrong = [one | {"utc_ns": one["utc_ns"] - by_s * 10**9} for one in true[:2]]
    ends = {"started": wrong[0], "stopped": true[-1]}
    write_json(path / "recording.json", manifest | ends | {"utc_anchors": [*wrong, *true[2:]]})
    takes, _ = scan_card(evening / "cards" / "two")
    (found,) = propose(takes, [path])
    assert found.recording == path
    assert any(line.startswith("clock: +3.") for line in found.evidence)


def test_two_cameras_never_share_a_name(evening: Path, tmp_path: Path) -> None:
    """A recording whose camera is not known yet takes the first that fits, and its takes alone."""
    path = recording(tmp_path, "c-1", CAMERA_A, 0.0, motion=None)
    manifest = json.loads((path / "recording.json").read_text())
    write_json(path / "recording.json", manifest | {"devices": {}})
    takes, _ = scan_card(evening / "cards")
    proposals = propose(takes, [path])
    assert {one.clip.serial for one in proposals if one.recording} == {takes[0].serial}
    refused = [one.problem for one in proposals if not one.recording]
    assert any(f"c-1/gopro is the name of camera {takes[0].serial} already" in problem for problem in refused)


@pytest.mark.slow
def test_of_two_headsets_the_one_that_the_camera_rides_with_decides(evening: Path, tmp_path: Path) -> None:
    path = recording(tmp_path, "d-1", CAMERA_A, 0.0, motion=None)
    manifest = json.loads((path / "recording.json").read_text())
    streams = {}
    for name, motion in (("hololens-a", 99), ("hololens-b", 51)):
        streams[f"{name}/gyroscope"] = {"device": name, "port": 3806, "nominal_hz": 20, "format": {}}
        write_gyroscope(path / name / "gyroscope", motion)
    write_json(path / "recording.json", manifest | {"streams": streams})
    takes, _ = scan_card(evening / "cards" / "one" / "100GOPRO")
    placed = [one.clip.name for one in propose(takes, [path]) if one.recording]
    assert placed == ["GH010001.MP4"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "motion", "said"),
    [
        (8, "motion: ", "warning: the camera's gyroscope repeats one value from 0:08 to 0:16: left out"),
        (
            0,
            "motion: nothing to compare with",
            "warning: GH010001.MP4: the gyroscope repeats one value from 0:00 to 0:16",
        ),
    ],
)
def test_a_gyroscope_that_stands_still_is_named_and_its_film_imported(
    shared_data: Callable[[str], Path], tmp_path: Path, first: int, motion: str, said: str
) -> None:
    maker = film_maker(shared_data)
    recording(tmp_path / "data", "e-1", CAMERA_A, 0.0, motion=51)
    [path] = shoot(tmp_path / "card", CAMERA_A, 1, 2.0, motion=51)
    words = ["gopro", "import", str(tmp_path / "card"), "--match", str(tmp_path / "data")]
    sound = CliRunner().invoke(main, words, input="n\n")
    assert "motion: " in sound.stdout
    assert "warning: " not in sound.stdout

    whole = maker.tables.read(path)
    maker.tables.write(maker.still_gyro(whole, first, len(whole["gpmd"].samples)), path)
    shown = CliRunner().invoke(main, words, input="n\n")
    assert f"    {said}\n" in shown.stdout
    done = CliRunner().invoke(main, [*words, "--yes", "--json"])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    [proposal] = answer["proposals"]
    assert said in proposal["evidence"]
    assert proposal["evidence"][-1].startswith(motion)
    assert [one["files"] for one in answer["imported"]] == [["GH010001.MP4"]]


def with_sound(film: Path, wave: npt.NDArray[np.float64], at_s: float, seed: int) -> None:
    """Give a film another sound: noise of a kitchen 20 dB louder than a wave that is heard in it."""
    import av

    samples = 0.2 * np.random.default_rng(seed).normal(size=int(16 * SOUND_HZ)).clip(-4, 4)
    at = int(at_s * SOUND_HZ)
    samples[at : at + len(wave)] += 0.1 * wave / wave.std() * 0.2
    silent = film.rename(film.with_suffix(".silent"))
    with av.open(str(silent)) as source, av.open(str(film), "w", format="mp4") as target:
        kept = [one for one in source.streams if one.type == "video"]
        copies = {one.index: target.add_stream_from_template(one) for one in kept}
        sound = target.add_stream("aac", rate=SOUND_HZ)
        for packet in source.demux(kept):
            if packet.dts is not None:
                packet.stream = copies[packet.stream_index]
                target.mux(packet)
        for first in range(0, len(samples) - 1023, 1024):
            block = np.stack([samples[first : first + 1024]] * 2).astype(np.float32)
            frame = av.AudioFrame.from_ndarray(block, format="fltp", layout="stereo")
            frame.sample_rate, frame.pts = SOUND_HZ, first
            target.mux(sound.encode(frame))
        target.mux(sound.encode(None))
    silent.unlink()


@pytest.mark.slow
def test_a_slate_tells_where_neither_clock_nor_motion_does(tmp_path: Path) -> None:
    """One camera whose clock was never set and without telemetry: three films, the last of another house."""
    for number in range(4):
        made = recording(tmp_path / "data", f"f-{number}", CAMERA_A, 86_400.0 * number, motion=None)
        manifest = json.loads((made / "recording.json").read_text())
        write_json(made / "recording.json", manifest | {"devices": {"gopro": {"kind": "gopro"}}})
    for number, slate in enumerate(("f-2", "f-0", "elsewhere"), start=1):
        [path] = shoot(tmp_path / "card", CAMERA_A, number, 86_400.0 * 400, motion=51)
        with_sound(path, slate_wave(slate, SOUND_HZ), 3.0 + number, seed=number)
    clips, bad = scan_card(tmp_path / "card")
    assert not bad
    proposals = propose(clips, sorted((tmp_path / "data").iterdir()))
    assert [one.recording and one.recording.name for one in proposals] == ["f-2", "f-0", None]
    assert [line for one in proposals for line in one.evidence if line.startswith("slate")] == [
        "slate: heard at 4.0 s",
        "slate: heard at 5.0 s",
    ]


@pytest.mark.slow
def test_a_slate_is_heard_through_a_moving_head_and_never_in_noise_alone() -> None:
    """6 dB below the noise in its own band, stretched by 600 ppm, echoed; 40 ids are asked for."""
    ids = [f"take-{number}" for number in range(40)]
    random = np.random.default_rng(7)
    noise = random.normal(size=40 * 12_000)
    assert find_slate(Sound(0.0, noise.astype(np.float32), 12_000.0), ids) is None
    wave = slate_wave("take-7", 48_000)
    moved = np.interp(np.arange(0, len(wave), 4) * (1 + 6e-4), np.arange(len(wave)), wave)
    echoes = np.concatenate([[1.0], 0.1 * random.normal(size=1200) * np.exp(-np.arange(1200) / 400)])
    heard_wave = np.convolve(moved, echoes)
    noise[300_000 : 300_000 + len(heard_wave)] += 0.33 * heard_wave / moved.std()
    heard = find_slate(Sound(1.5, noise.astype(np.float32), 12_000.0), ids)
    assert heard is not None
    assert heard.recording == "take-7"
    assert abs(heard.at_s - (1.5 + 300_000 / 12_000)) < 0.003
    loud = Sound(0.0, (noise + 0.01).astype(np.float32), 12_000.0)
    loud.samples[60_000 : 60_000 + len(moved)] += 30 * moved.astype(np.float32)
    assert find_slate(loud, [one for one in ids if one != "take-7"]) is None  # it is of none of these


def test_copies_are_compared_and_never_written_over(tmp_path: Path) -> None:
    source, target = tmp_path / "GX010001.MP4", tmp_path / "there" / "GX010001.MP4"
    source.write_bytes(b"one")
    target.parent.mkdir()
    target.write_bytes(b"two")
    with pytest.raises(DownloadFailed, match="never overwritten"):
        copy_verified(source, target)
    assert target.read_bytes() == b"two"


def test_links_and_strange_names_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "card").mkdir()
    (tmp_path / "card" / "GX010001.MP4").symlink_to("/etc/passwd")
    (tmp_path / "card" / "my film.mp4").write_bytes(b"x")
    takes, bad = scan_card(tmp_path / "card")
    assert takes == []
    assert [one.why for one in bad] == ["its name is not that of a GoPro file"]
