"""`kitchensync redact` against a recording whose every byte is known: what is gone, what stays, what verify says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from click.testing import CliRunner
from dying_commands import Dying, dying_commands
from folder_contents import contents
from paused_recording import (
    CHUNK_S,
    FILM,
    FPS,
    GROUP,
    PLANTED_HZ,
    RATES,
    SECONDS,
    SEEN,
    SOUND_HZ,
    TONE_HZ,
    Truth,
    read_film,
    write_paused,
)  # fmt: skip
from typed_commands import code_and_answer as run

from kitchensync.cli import main
from kitchensync.storage.copies.derived import asked, noting, will_write
from kitchensync.storage.manifest import edit_manifest, write_json
from kitchensync.storage.move.archive import archive
from kitchensync.storage.move.freeing import FreeRule
from kitchensync.storage.move.mover import run_mover
from kitchensync.storage.recording import open_recording

pytestmark = pytest.mark.slow

PAUSE_S = (4.3, 6.7)
TOUCHES = [("pause", PAUSE_S[0]), ("resume", PAUSE_S[1])]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    path = tmp_path_factory.mktemp("data") / "take"
    return path, write_paused(path, TOUCHES, tone_s=PAUSE_S)


@pytest.fixture
def take(made: tuple[Path, Truth], tmp_path: Path) -> Path:
    return Path(shutil.copytree(made[0], tmp_path / "data" / "take"))


def redact(take: Path, *words: object) -> dict[str, Any]:
    code, said = run("redact", take, "--reason", "a visitor", *words)
    assert code == (1 if said["status"] == "open" else 0), said
    return said


def residue(folder: Path, truth: Truth, pause_s: tuple[float, float] = PAUSE_S) -> list[tuple[str, float]]:
    """Search all files for what was recorded in the pause: pictures and sound, byte by byte."""
    every = b"".join(contents(folder).values())
    streams = {name: truth.packets[name] for name in SEEN if not name.endswith("ahat")}
    streams |= {"film": truth.pictures, "its sound": truth.sounds}
    found = []
    for name, samples in streams.items():
        elsewhere = {payload for at_s, payload in samples if not pause_s[0] <= at_s <= pause_s[1]}
        planted = [one for one in samples if pause_s[0] <= one[0] <= pause_s[1] and one[1] not in elsewhere]
        found += [(name, at) for at, one in planted if one in every]
    recordings = [path.parent for path in folder.rglob("recording.json")]
    for path in recordings:
        with open_recording(path, with_pauses=True) as recording:
            left = {payload for _, payload in recording["hololens/depth_ahat"].packets()}
        depth = truth.packets["hololens/depth_ahat"]
        found += [("depth", at_s) for at_s, one in depth if pause_s[0] <= at_s <= pause_s[1] and one in left]
    return found


def stays(at_s: float, pause_s: tuple[float, float] = PAUSE_S) -> bool:
    """Return whether a packet lies in a chunk that no pause touches, give or take two packets."""
    start = at_s // CHUNK_S * CHUNK_S
    return start + CHUNK_S + 0.1 < pause_s[0] or start - 0.1 > pause_s[1]


def check_what_is_left(path: Path, truth: Truth, before: dict[str, bytes]) -> None:
    with open_recording(path, with_pauses=True) as recording:
        for name, packets in truth.packets.items():
            left = {payload for _, payload in recording[name].packets()}
            kept = [payload for at_s, payload in packets if name not in SEEN or stays(at_s)]
            assert left == set(kept), name
    film = read_film(path / FILM)
    group_s = GROUP / FPS
    for (at_s, old), (_, new) in zip(truth.pictures, film.pictures, strict=True):
        start_s = at_s // group_s * group_s
        if start_s + group_s < PAUSE_S[0] - 0.1 or start_s > PAUSE_S[1] + 0.1:
            assert old == new, f"picture at {at_s}"
    for (at_s, old), (_, new) in zip(truth.sounds, film.sounds, strict=True):
        if at_s < PAUSE_S[0] - 0.2 or at_s > PAUSE_S[1] + 0.2:
            assert old == new, f"sound at {at_s}"
    for name, content in contents(path).items():
        if name in before and name not in ("recording.json", "gopro/media.json", FILM) and "-" not in name:
            assert content == before[name], name


def check_account(path: Path, seen: tuple[str, ...] = SEEN) -> None:
    code, said = run("verify", path)
    assert (code, said["status"]) == (0, "WARN"), said
    assert any("redacted" in reason for reason in said["reasons"])
    assert not said["corrupt"]
    for name in RATES:
        facts = said["streams"][name]
        missing = sum(last - first + 1 for first, last in facts["missing"])
        assert facts["received"] == facts["stored"] + missing == SECONDS * RATES[name]
        assert {gap["cause"] for gap in facts["gaps"]} <= {"redacted"}
        assert bool(missing) == (name in seen)
        if name in seen:
            assert [reason for reason in said["reasons"] if reason.startswith(name)], name


def test_what_was_taken_in_the_pause_is_gone_and_all_else_is_there(
    take: Path, made: tuple[Path, Truth]
) -> None:
    truth, before = made[1], contents(take)
    assert run("verify", take)[1]["status"] == "PASS"
    assert residue(take, truth), "it was there"
    said = redact(take, "--by", "researcher-3")
    assert said["status"] == "done"
    assert not residue(take, truth)
    check_what_is_left(take, truth, before)
    check_account(take)
    manifest = json.loads((take / "recording.json").read_text())
    (one,) = manifest["redactions"]
    assert (one["reason"], one["by"], one["state"]) == ("a visitor", "researcher-3", "done")
    was = json.loads(before["recording.json"])["files"]
    destroyed = {
        f"{name}/{chunk['chunk']:06d}.h5": chunk["sha256"] for name in SEEN for chunk in one["streams"][name]
    }
    assert destroyed == {name: was[name]["sha256"] for name in destroyed}
    assert set(was) - set(manifest["files"]) == set(destroyed)
    assert "a visitor" in (take / "events" / "researcher.jsonl").read_text()
    again = contents(take)
    assert redact(take)["status"] == "nothing"
    assert contents(take) == again


def test_the_film_plays_on_and_is_silent_in_between(take: Path) -> None:
    redact(take)
    shown, sound = set(), []
    with av.open(str(take / FILM)) as film:
        for packet in film.demux(video=0):
            try:
                shown |= {round(picture.time * FPS) for picture in packet.decode()}
            except av.error.InvalidDataError:
                continue
    with av.open(str(take / FILM)) as film:
        for frame in film.decode(audio=0):
            sound.append(frame.to_ndarray()[0])
    hidden = range(int(PAUSE_S[0] * FPS) + 1, int(PAUSE_S[1] * FPS))
    assert not shown & set(hidden)
    assert shown >= {*range(119), *range(225, SECONDS * FPS)}
    wave = np.concatenate(sound)
    spectrum = [np.abs(np.fft.rfft(wave[n * SOUND_HZ : (n + 1) * SOUND_HZ])) for n in range(SECONDS)]
    heard = [hz for one in spectrum for hz in (TONE_HZ, PLANTED_HZ) if one[hz - 5 : hz + 5].max() > 50]
    assert set(heard) == {TONE_HZ}, "the planted tone is in no second of it"
    assert len(heard) >= SECONDS - 4


@pytest.mark.parametrize("small", ["sync/review/gopro_360p.mp4", "gopro/proxies/GL010001.LRV"])
def test_small_copies_of_the_film_go_with_it(take: Path, small: str) -> None:
    (take / small).parent.mkdir(parents=True)
    shutil.copy(take / FILM, take / small)
    redact(take)
    assert not (take / small).exists()


def test_archives_and_copies_lose_it_too(take: Path, made: tuple[Path, Truth], tmp_path: Path) -> None:
    archive(take)
    store = tmp_path / "store"
    store.mkdir()
    run_mover([take], [store], rule=None)
    before = contents(store / "take")
    said = redact(take)
    assert sorted(said["places"]) == sorted([str(take), str(store / "take")])
    assert not residue(tmp_path, made[1])
    for path in (take, store / "take"):
        check_what_is_left(path, made[1], before)
        check_account(path)
    (state,) = run_mover([take], [store], rule=None)
    assert not state.problem
    check_account(store / "take")


def test_a_copy_that_was_never_finished_loses_it_and_so_do_half_written_files(
    take: Path, made: tuple[Path, Truth], tmp_path: Path
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    run_mover([take], [store], rule=None)
    (store / "take" / "recording.json").unlink()  # it comes last: killed before
    for home in (take, store / "take"):
        shutil.copy(home / "hololens/pv/000003.h5", home / "hololens/pv/000001-000006.h5.part")
        shutil.copy(home / FILM, home / f"{FILM}.part")
    said = redact(take)
    assert (said["status"], said["open"]) == ("done", [])
    assert not residue(tmp_path, made[1])
    check_account(take)


def test_files_that_were_freed_lose_it_in_their_store_and_a_store_that_is_away_is_open(
    take: Path, made: tuple[Path, Truth], tmp_path: Path
) -> None:
    stores = [tmp_path / "one", tmp_path / "two"]
    for store in stores:
        store.mkdir()
    run_mover([take], stores, rule=FreeRule(2, 0.0))
    assert not (take / FILM).exists()
    stores[0].rename(tmp_path / "away")
    said = redact(take)
    assert said["status"] == "open"
    assert "one" in said["open"][0]
    assert residue(tmp_path / "away", made[1])
    assert not residue(stores[1], made[1])
    assert run("verify", take)[1]["status"] == "WARN"
    (tmp_path / "away").rename(stores[0])
    assert redact(take)["status"] == "done"
    assert not residue(tmp_path, made[1])
    check_account(take)
    for store in stores:
        check_account(store / "take")


@pytest.mark.parametrize(
    ("touches", "gone_s"),
    [
        ([("pause", 5.0)], (5.0, SECONDS)),
        ([("pause", -9.0), ("resume", 99.0)], (0, SECONDS)),
        ([("pause", 4.2), ("pause", 4.5), ("resume", 5.0), ("resume", 5.8)], (4.2, 5.8)),
        ([("pause", 0.5), ("resume", 0.6)], (0.5, 0.6)),
    ],
    ids=["without an end", "longer than the recording", "nested", "at the start"],
)
def test_odd_pauses(tmp_path: Path, touches: list, gone_s: tuple[float, float]) -> None:
    take = tmp_path / "take"
    truth = write_paused(take, touches)
    redact(take)
    assert not residue(take, truth, gone_s)
    check_account(take, SEEN if gone_s[1] > 1 else SEEN[:2])
    with open_recording(take) as recording:
        left = len(recording["hololens/pv"])
    kept = sum(stays(at_s, gone_s) for at_s, _ in truth.packets["hololens/pv"])
    assert left == kept


def test_seconds_can_be_given(take: Path, made: tuple[Path, Truth]) -> None:
    redact(take, "--from", 8.2, "--to", 8.4)
    assert not residue(take, made[1], (8.2, 8.4))
    assert residue(take, made[1]), "the pause was not asked for"


@pytest.mark.parametrize(
    ("words", "change", "code", "why"),
    [
        (["--from", 3], None, 2, "both --from and --to"),
        ([], lambda manifest: manifest.update(state="recording"), 1, "is not finished"),
        ([], lambda manifest: manifest.update(withdrawn={"utc_ns": 1}), 1, "withdr"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_changed(
    take: Path, words: list, change: Callable[[dict], None] | None, code: int, why: str
) -> None:
    if change:
        with edit_manifest(take) as manifest:
            change(manifest)
    before = contents(take)
    done = CliRunner().invoke(main, ["redact", str(take), "--reason", "x", *map(str, words)])
    assert done.exit_code == code
    assert why in done.output
    assert contents(take) == before


def test_a_film_that_nobody_placed_needs_a_word(take: Path, made: tuple[Path, Truth]) -> None:
    shutil.rmtree(take / "sync")
    media = json.loads((take / "gopro" / "media.json").read_text())
    write_json(take / "gopro" / "media.json", {"files": media["files"]})
    before = contents(take)
    done = CliRunner().invoke(main, ["redact", str(take), "--reason", "x"])
    assert done.exit_code == 1
    assert "--whole-films" in done.output
    assert contents(take) == before
    redact(take, "--whole-films")
    assert not residue(take, made[1], (0.0, SECONDS)) or not residue(take, made[1])
    whole = (take / FILM).read_bytes()
    assert not [at_s for at_s, one in made[1].pictures if one in whole]


def test_without_a_pause_there_is_nothing_to_do(tmp_path: Path) -> None:
    write_paused(tmp_path / "take", [])
    done = CliRunner().invoke(main, ["redact", str(tmp_path / "take"), "--reason", "x"])
    assert done.exit_code == 1
    assert "no privacy pause" in done.output


@pytest.fixture(scope="module")
def dying() -> Iterator[Dying]:
    with dying_commands() as killed:
        yield killed


@pytest.mark.parametrize("is_packed", [False, True])
def test_killed_anywhere_the_same_command_takes_it_up(
    take: Path, made: tuple[Path, Truth], dying: Dying, tmp_path: Path, is_packed: bool
) -> None:
    if is_packed:
        archive(take)
    before = contents(take)
    for operation in (1, 4, 9):
        again = Path(shutil.copytree(take, tmp_path / str(operation) / "take"))
        assert dying(again, ["redact", str(again), "--reason", "a visitor"], operation)
        status = run("verify", again)[1]["status"]
        assert status != "PASS" or contents(again).items() >= before.items(), "begun, it says so"
        redact(again)
        assert not residue(again, made[1])
        check_what_is_left(again, made[1], before)
        check_account(again)
        shutil.rmtree(again)


def test_the_cloud_holds_nothing_of_it_and_what_was_made_before_is_named(
    take: Path, made: tuple[Path, Truth], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = f"file://{tmp_path}/own"
    (take.parent / "lab.toml").write_text(f'stores = ["{own}"]\n')
    monkeypatch.chdir(tmp_path)
    assert run("upload", take, own)[0] == 0
    with noting("kitchensync overlay", pytest.fail):
        asked(take)
        will_write(tmp_path / "before.mp4")
        (tmp_path / "before.mp4").write_bytes(b"pictures")
    (tmp_path / "own").rename(tmp_path / "away")
    (tmp_path / "own").write_text("no folder")
    said = redact(take)
    assert (said["status"], len(said["open"])) == ("open", 2), "the cloud is away, and there is an older film"
    (tmp_path / "own").unlink()
    (tmp_path / "away").rename(tmp_path / "own")
    assert residue(tmp_path / "own", made[1]) != []
    said = redact(take)
    assert residue(tmp_path / "own", made[1]) == []
    assert [line.partition(": ")[0] for line in said["open"]] == [str(tmp_path / "before.mp4")]
    Path("before.mp4").unlink()
    assert redact(take)["status"] == "done"
    assert run("gopro", "join", take / FILM, "--out", "before.mp4")[0] == 0, "made since, it shows nothing"
    assert redact(take)["status"] in ("done", "nothing")
    assert run("upload", take, own)[0] == 0
    copy = tmp_path / "own" / "take"
    assert {name: hashed for name, hashed in contents(copy).items() if name != "copies.jsonl"} == {
        name: held for name, held in contents(take).items() if name not in ("copies.jsonl", "derived.jsonl")
    }
