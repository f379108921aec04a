"""Readers and exports keep sound in sync if it starts late, has gaps or belongs to frames of unequal length."""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from click.testing import CliRunner
from cooked_recording import copied
from film_sounds import (
    HOLE_S,
    LATE_S,
    SECONDS,
    end_of_sound,
    flashes,
    number_of,
    onsets,
    picture_stamps,
    pictures_of_file,
    stored_again,
    tones_of_file,
    write_uneven,
)
from made_videos import SOUND_HZ
from mcap_files import read
from numpy.typing import NDArray
from small_recordings import seal_stream

import kitchensync as ks
from kitchensync.cli import main
from kitchensync.sensors.gopro.files.clip import open_clip
from kitchensync.sensors.gopro.files.film_sound import AAC_SAMPLES
from kitchensync.sensors.gopro.mp4.join import join
from kitchensync.storage.events import EventLog
from kitchensync.storage.exports.film import write_small_film
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.reading.camera_streams import CameraStream
from kitchensync.storage.recording import open_recording
from kitchensync.storage.redact.blanked_films import hidden_samples
from kitchensync.sync.recording.compare import camera_sound

pytestmark = pytest.mark.slow
WITHIN_S = 0.002
KINDS = ("uneven", "late", "early", "hole")


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A video, and three copies with late, early and missing sound."""
    folder = tmp_path_factory.mktemp("sounds")
    uneven = write_uneven(folder / "uneven.MP4")
    return {
        "uneven": uneven,
        "late": stored_again(uneven, folder / "late.MP4", late_s=LATE_S),
        "early": stored_again(uneven, folder / "early.MP4", late_s=-LATE_S),
        "hole": stored_again(uneven, folder / "hole.MP4", hole_s=HOLE_S),
    }


def true_tones(kind: str) -> NDArray[np.float64]:
    """Return the true times of the tones; edit lists have whole milliseconds, so the late ones are at 0.4994 s."""
    seconds = np.arange(1, SECONDS)
    return {"late": seconds + 0.4994, "early": seconds - 0.5}.get(kind, seconds.astype(float))


@pytest.mark.parametrize("kind", KINDS)
def test_the_videos_have_the_intended_sound(films: dict[str, Path], kind: str) -> None:
    np.testing.assert_allclose(tones_of_file(films[kind]), true_tones(kind), atol=WITHIN_S)


@pytest.mark.parametrize("kind", KINDS)
def test_sound_is_read_at_the_times_of_the_file(films: dict[str, Path], kind: str) -> None:
    clip = open_clip(films[kind])
    blocks = CameraStream("gopro/audio", clip).sound()
    tones = onsets((block.t_s, block.samples[0], block.rate_hz) for block in blocks)
    np.testing.assert_allclose(tones, true_tones(kind), atol=WITHIN_S)
    heard = camera_sound(films[kind])
    assert heard is not None
    tones = onsets(
        (heard.start_s + k / heard.hz, np.array([sample]), 1) for k, sample in enumerate(heard.samples)
    )
    np.testing.assert_allclose(tones, true_tones(kind), atol=WITHIN_S)


@pytest.mark.parametrize("kind", KINDS)
def test_a_small_video_keeps_frames_and_sound_in_sync(
    films: dict[str, Path], kind: str, tmp_path: Path
) -> None:
    made = write_small_film(open_clip(films[kind]), tmp_path / "small.mp4", height=180)
    shown = pictures_of_file(tmp_path / "small.mp4")
    assert (made.frames, made.fps, made.missing) == (SECONDS * 30, Fraction(30), ())
    np.testing.assert_allclose([at for at, _ in shown], np.arange(SECONDS * 30) / 30, atol=1e-6)
    stamps = np.array(picture_stamps()) / 90_000
    true = [int(np.flatnonzero(stamps <= at + 1e-9)[-1]) for at, _ in shown]
    assert [number_of(image) for _, image in shown] == true
    np.testing.assert_allclose(flashes(shown), np.arange(1, SECONDS), atol=1e-6)
    heard = true_tones(kind)
    np.testing.assert_allclose(tones_of_file(tmp_path / "small.mp4"), heard[heard >= 0], atol=WITHIN_S)


def test_sound_of_chapters_is_in_sync(films: dict[str, Path], tmp_path: Path) -> None:
    for number, kind in enumerate(("uneven", "late"), 1):
        shutil.copy(films[kind], tmp_path / f"GX0{number}0001.MP4")
    clip = open_clip(tmp_path / "GX010001.MP4", tmp_path / "GX020001.MP4")
    true = np.concatenate([true_tones("uneven"), SECONDS + true_tones("late")])
    blocks = CameraStream("gopro/audio", clip).sound()
    tones = onsets((block.t_s, block.samples[0], block.rate_hz) for block in blocks)
    np.testing.assert_allclose(tones, true, atol=WITHIN_S)
    write_small_film(clip, tmp_path / "small.mp4", height=180)
    np.testing.assert_allclose(tones_of_file(tmp_path / "small.mp4"), true, atol=WITHIN_S)


@pytest.mark.parametrize("kinds", [("uneven",) * 3, ("hole",) * 3, ("uneven", "late", "uneven"), ("late",) * 2,
                                   ("late", "uneven", "late"), ("early", "uneven", "late")])  # fmt: skip
def test_sound_of_joined_chapters_is_in_sync(
    films: dict[str, Path], tmp_path: Path, kinds: tuple[str, ...]
) -> None:
    stored = films | {"uneven": stored_again(films["uneven"], tmp_path / "uneven.MP4")}
    join([stored[kind] for kind in kinds], tmp_path / "joined.MP4")
    tones = np.concatenate([number * SECONDS + true_tones(kind) for number, kind in enumerate(kinds)])
    np.testing.assert_allclose(tones_of_file(tmp_path / "joined.MP4"), tones, atol=WITHIN_S)
    ends = [end_of_sound(path) for path in (stored[kinds[-1]], tmp_path / "joined.MP4")]
    assert ends[1] == pytest.approx(SECONDS * (len(kinds) - 1) + ends[0], abs=AAC_SAMPLES / SOUND_HZ)


@pytest.fixture(scope="module", params=KINDS)
def recorded(
    request: pytest.FixtureRequest,
    films: dict[str, Path],
    cooked: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, Path]:
    """The aligned recording with one of these videos instead of its own."""
    take = copied(cooked.parent, f"sound-{request.param}")
    take = Path(shutil.move(take, tmp_path_factory.mktemp("recorded") / take.name))
    (film,) = (take / "gopro").glob("*.MP4")
    shutil.copy(films[request.param], film)
    return request.param, take


def session_of_media(take: Path, media_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return session seconds of media seconds, by the samples of the alignment."""
    (path,) = (take / "sync" / "alignment").rglob("*.json")
    rows = np.array(json.loads(path.read_text())["samples"], np.float64)
    with ks.open(take) as rec:
        streams = [rec.stored[name] for name in rec.stored.streams if name.startswith("hololens/")]
        zero_ticks = min(int(stream.index["device_ticks"][0]) for stream in streams if len(stream))
    (slope, at_zero) = np.polyfit(rows[:, 0], rows[:, 1] - zero_ticks, 1)
    return np.asarray((at_zero + slope * media_s) / 1e7)


def test_sound_is_on_session_time_within_its_own_bound(recorded: tuple[str, Path]) -> None:
    kind, take = recorded
    true_s = session_of_media(take, true_tones(kind))
    with ks.open(take) as rec:
        sound = rec["gopro/audio"]
        tones = onsets((at, sound[k][0], sound.rate_hz) for k, at in enumerate(sound.times))
        np.testing.assert_allclose(tones, true_s, atol=WITHIN_S)
        beyond_s = sound.bound_at(6.0) - rec.gopro.bound_at(6.0)
        own_bound_s = 1024 / 48000 if kind == "late" else 0.0
        assert beyond_s == pytest.approx(own_bound_s, abs=0.0006)


def test_sound_in_mcap_and_lerobot_agrees_with_reading(recorded: tuple[str, Path], tmp_path: Path) -> None:
    kind, take = recorded
    true_s = session_of_media(take, true_tones(kind))
    for name, more in (("mcap", ()), ("lerobot", ("--width", 320, "--streams", "gopro/video,gopro/audio"))):
        args = ["export", name, take, "--out", tmp_path / name, *more]
        done = CliRunner().invoke(main, [str(arg) for arg in args])
        assert done.exit_code == 0, done.output
    blocks = [
        (at, np.frombuffer(sound.data, "<i2") / 32767, sound.sample_rate)
        for at, sound in read(tmp_path / "mcap" / f"{take.name}.mcap")[0]["/gopro/audio"]
    ]
    with ks.open(take) as rec:
        zero_ns = int(rec.clock.to_host(np.zeros(1, np.int64))[0])
        first_s = float(rec.gopro.times[0])
    logged = onsets(((at - zero_ns) / 1e9, samples, rate) for at, samples, rate in blocks)
    np.testing.assert_allclose(logged, true_s, atol=WITHIN_S)
    film = tmp_path / "lerobot/videos/observation.images.gopro/chunk-000/file-000.mp4"
    heard_s = true_s - first_s
    np.testing.assert_allclose(tones_of_file(film), heard_s[heard_s >= 0], atol=WITHIN_S)
    info = json.loads((tmp_path / "lerobot/meta/info.json").read_text())
    assert info["features"]["observation.images.gopro"]["info"]["has_audio"]


@pytest.mark.parametrize(("codec", "delay_s"), [("aac", 1024 / 48000), ("raw", 0.0)])
def test_the_headset_s_bound_has_the_delay_of_its_encoder(
    cooked: Path, tmp_path: Path, codec: str, delay_s: float
) -> None:
    take = Path(shutil.copytree(cooked, tmp_path / "take1"))
    with ks.open(take) as rec:
        first = int(rec.stored["hololens/pv"].index["device_ticks"][0])
    seal_stream(take, "hololens/microphone", [(first + 213_333 * k, b"") for k in range(300)])
    with edit_manifest(take) as manifest:
        form = {"codec": codec, "rate_hz": 48000, "channels": 2}
        manifest["streams"]["hololens/microphone"] = {"nominal_hz": 46.9, "format": form}
    with ks.open(take) as rec:
        assert rec.microphone.bound_at(5.0) == pytest.approx(rec.pv.bound_at(5.0) + delay_s)


def test_sound_of_a_pause_is_destroyed(recorded: tuple[str, Path], tmp_path: Path) -> None:
    _, take = recorded
    take = Path(shutil.copytree(take, tmp_path / take.name))
    (film,) = (take / "gopro").glob("*.MP4")
    with ks.open(take) as rec:
        ends_ns = rec.clock.to_host(
            np.rint(session_of_media(take, np.array([3.0, 6.0])) * 1e9).astype(np.int64)
        )
    log = EventLog(take, "operator")
    for kind, at_ns in zip(("pause", "resume"), ends_ns.tolist(), strict=True):
        log.append(kind, host_ns=at_ns, uncertainty_ns=0, body={}, op_id=kind)
    with open_recording(take) as recording:
        runs = hidden_samples(recording, film)["soun"]
    gone = {number for first, last in runs for number in range(first, last + 1)}
    with av.open(str(film)) as source:
        at_s = [float(packet.pts * packet.time_base) for packet in source.demux(audio=0) if packet.size]
    assert gone >= {number for number, at in enumerate(at_s) if 3.0 <= at < 6.0}
    assert gone <= {number for number, at in enumerate(at_s) if 2.7 <= at < 6.3}
