"""A film of a person replayed, adopted and copied by hand: it stays the film of that person, and goes with it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cameras import virtual_camera
from click.testing import CliRunner

from kitchensync.cli import main
from kitchensync.sensors.gopro.control.camera import GoProHttp
from kitchensync.sensors.gopro.control.download import download
from kitchensync.storage.installation.own_list import LineKind, note_films, own_list
from kitchensync.storage.manifest import edit_manifest, read_manifest, write_json

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]
FILM = "gopro/GX010001.MP4"


def run(*words: object) -> tuple[int, Any, str]:
    done = CliRunner().invoke(main, [*(str(word) for word in words), "--json"])
    assert not done.exception or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, json.loads(done.stdout) if done.stdout else None, done.stderr


def filmed(folder: Path, camera: GoProHttp) -> dict[str, Any]:
    """Film for a moment and fetch it; return what media.json says of the camera."""
    with camera:
        camera.shutter(on=True)
        time.sleep(2.5)
        camera.shutter(on=False)
        camera.wait_idle()
        (file,) = (one for one in camera.media() if one.name.endswith(".MP4"))
        got = download(camera.entry, file, folder / FILM)
        serial = camera.info().serial
    entry = {"folder": file.folder, "file": file.name, "bytes": got.bytes, "sha256": got.sha256}
    return {"address": camera.base_url, "serial": serial, "files": [entry]}


def write_recording(path: Path, media: dict[str, Any], person: str) -> None:
    manifest = {"schema": "recording/1", "recording": path.name, "uuid": f"uuid of {path.name}", "files": {}}
    manifest |= {"state": "complete", "streams": {}, "devices": {}, "consent": "none", "pseudonym": person}
    write_json(path / "gopro" / "media.json", media)
    write_json(path / "recording.json", manifest)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A recording of P07 whose camera is gone."""
    take = tmp_path / "data" / "take"
    (take / "gopro").mkdir(parents=True)
    with virtual_camera(tmp_path / "camera") as (_, url):
        media = filmed(take, GoProHttp(url))
    write_recording(take, {"files": media["files"]}, "P07")
    note_films(take, "gopro", media["files"])
    return tmp_path / "data"


def recorded_from_a_replay(data: Path, film: Path, host: str) -> Path:
    kitchensync = [sys.executable, "-P", "-m", "kitchensync"]
    simulate = [*kitchensync, "simulate", "--seed", "3", "--hololens-host", host, "--gopro-port", "0"]
    with subprocess.Popen(
        [*simulate, "--replay", str(film), "--out", str(data.parent / "sim")],
        stdout=subprocess.PIPE,
        text=True,
    ) as served:
        assert served.stdout is not None
        port = served.stdout.readline().strip().partition("=")[2]
        record = ["record", "replayed", "--data", str(data), "--gopro", f"http://127.0.0.1:{port}"]
        subprocess.run([*kitchensync, *record, "--seconds", "3"], check=True, capture_output=True)
        served.send_signal(signal.SIGTERM)
    assert (data / "replayed" / FILM).read_bytes() == film.read_bytes()
    return data / "replayed"


def test_what_was_made_of_a_film_of_a_person_needs_consent_and_goes_with_it(
    data: Path, loopback_host: str
) -> None:
    film = (data / "take" / FILM).read_bytes()
    replayed = recorded_from_a_replay(data, data / "take" / FILM, loopback_host)
    assert "virtual" not in read_manifest(replayed), "a person is in it"
    code, _, said = run("upload", replayed, f"file://{data.parent}/cloud")
    assert (code, "nobody agreed" in said) == (1, True)
    assert not (data.parent / "cloud").exists()
    assert run("adopt", "adopted", data / "take" / FILM, "--data", data)[0] == 0
    shutil.copytree(data / "take", data / "by-hand")
    shutil.copytree(data / "take", data / "of-two")
    with edit_manifest(data / "of-two") as manifest:
        manifest |= {"pseudonym": "P08", "uuid": "another"}
    code, _, said = run("withdraw", data / "take")
    assert (code, f"{data / 'by-hand'} has the same uuid" in said) == (1, True), "anybody can write a uuid"
    assert "withdrawn" not in read_manifest(data / "take")
    _, said, _ = run("withdraw", data / "take", data / "by-hand")
    assert set(said["recordings"]) == {"take", "replayed", "adopted", "by-hand"}
    held = [path.parent.parent.name for path in data.rglob("*.MP4") if path.read_bytes() == film]
    assert held == ["of-two"], "it shows P08 too"
    opened = {Path(one["place"]).name for one in said["places"] if one["open"]}
    assert opened - {"card of camera C3501325000003"} == {"of-two"}


def test_a_withdrawn_film_is_neither_replayed_nor_adopted(data: Path) -> None:
    with edit_manifest(data / "take") as manifest:
        manifest["withdrawn"] = {"host_ns": 1}
    film, out = data / "take" / FILM, data.parent / "sim"
    code, _, said = run("adopt", "adopted", film, "--data", data)
    assert (code, "withdrew" in said) == (1, True)
    done = CliRunner().invoke(main, ["simulate", "--seed", "1", "--replay", str(film), "--out", str(out)])
    assert (done.exit_code, "withdrew" in done.stderr) == (1, True)
    assert sorted(path.name for path in data.iterdir()) == ["_app", "take"]
    assert not out.exists()


def test_the_camera_s_card_is_erased_when_it_answers(tmp_path: Path) -> None:
    take = tmp_path / "data" / "take"
    (take / "gopro").mkdir(parents=True)
    with virtual_camera(tmp_path / "camera") as (_, url):
        media = filmed(take, GoProHttp(url))
        with GoProHttp(url) as camera:  # and somebody else
            camera.shutter(on=True)
            time.sleep(1)
            camera.shutter(on=False)
            camera.wait_idle()
        write_recording(take, media | {"address": "http://127.0.0.1:9"}, "P07")
        listed(take, "http://127.0.0.1:9", media)
        (card,) = (one for one in run("withdraw", take)[1]["places"] if one["place"].startswith("card of"))
        assert "GX010001.MP4 may be on it" in card["open"]
        listed(take, url, media)
        code, said, _ = run("withdraw", take)
        assert (code, said["status"]) == (0, "done")
        with GoProHttp(url) as camera:
            assert [one.name for one in camera.media()] == ["GX010002.MP4"], "another's film stays"
    assert not own_list(take).outside("uuid of take").is_unfinished


def listed(take: Path, address: str, media: dict[str, Any]) -> None:
    """Enter the camera and its films as the recorder does."""
    facts = {"recording": take.name, "device": "gopro", "address": address, "serial": media["serial"]}
    own_list(take).add(LineKind.CAMERA, "uuid of take", **facts)
    note_films(take, "gopro", media["files"])


def test_an_address_that_only_the_recording_names_is_not_contacted(tmp_path: Path) -> None:
    take = tmp_path / "data" / "take"
    (take / "gopro").mkdir(parents=True)
    with virtual_camera(tmp_path / "camera") as (_, url):
        media = filmed(take, GoProHttp(url))
        write_recording(take, media, "P07")
        code, said, _ = run("withdraw", take)
        assert code == 0
        (card,) = (one for one in said["places"] if one["place"].startswith("card of"))
        assert (card["done"], "GX010001.MP4" in card["place"]) == ("not made here", True)
        with GoProHttp(url) as camera:
            assert [one.name for one in camera.media()] == ["GX010001.MP4"]
