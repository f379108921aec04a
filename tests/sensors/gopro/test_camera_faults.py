"""Downloads and control with faults of the virtual camera."""

from __future__ import annotations

import random
import socket
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cameras import virtual_camera

from kitchensync.sensors.errors import CameraLost, CameraRefused, NoCredentials, SensorError
from kitchensync.sensors.gopro.control.camera import GoProHttp, MediaFile
from kitchensync.sensors.gopro.control.download import download, fetch_small
from kitchensync.sensors.gopro.control.entry import CameraAddress, read_credentials, write_credentials
from kitchensync.sensors.gopro.control.open_camera import open_camera
from kitchensync.sensors.gopro.control.settings import wanted_options
from kitchensync.virtual_kitchen.gopro.card import CardFile


def put(gopro: Any, folder: Path, size: int = 3_000_000) -> tuple[MediaFile, bytes]:
    """Put a generated file with an index on the card."""
    body = random.Random(size).randbytes(size)
    data = (16).to_bytes(4, "big") + b"ftypmp41" + bytes(4)
    data += (8 + size).to_bytes(4, "big") + b"mdat" + body + (8).to_bytes(4, "big") + b"moov"
    path = folder / "GX010009.MP4"
    path.write_bytes(data)
    gopro.camera.card.add(CardFile(path.name, path, len(data), 0))
    return MediaFile("100GOPRO", path.name, len(data), None), data


@pytest.mark.slow
@pytest.mark.parametrize(
    "faults",
    [
        ("gopro_cut:400000x6",),
        ("gopro_truncate:400000x6",),
        ("gopro_stall:1000000+2",),
        ("gopro_ignore_range", "gopro_cut:2000000x2"),
        ("gopro_slow:20000000",),
    ],
    ids=lambda faults: faults[0].partition(":")[0],
)
def test_files_are_exact_despite_faults_of_the_connection(tmp_path: Path, faults: tuple[str, ...]) -> None:
    limit_s = 1.0 if "stall" in faults[0] else 60.0
    with virtual_camera(tmp_path / "sim", *faults) as (gopro, url):
        file, data = put(gopro, tmp_path)
        (tmp_path / "here").mkdir()
        got = download(url, file, tmp_path / "here", read_timeout_s=limit_s, back_off_s=0.01)
        assert got.path.read_bytes() == data


@pytest.mark.slow
def test_twenty_cuts_of_a_long_file(tmp_path: Path) -> None:
    with virtual_camera(tmp_path / "sim", "gopro_cut:2000000x20") as (gopro, url):
        file, data = put(gopro, tmp_path, 50_000_000)
        (tmp_path / "here").mkdir()
        got = download(url, file, tmp_path / "here", back_off_s=0.0)
        assert got.path.read_bytes() == data
        assert gopro.camera.faults.find("gopro_cut").times == 0


@pytest.mark.slow
def test_repeated_errors_and_silence_are_named(tmp_path: Path) -> None:
    faults: list[tuple[str, type[SensorError], str]] = [
        ("gopro_500", CameraRefused, "HTTP 500"),
        ("gopro_vanish", CameraLost, "does not answer"),
    ]
    for fault, error, message in faults:
        with virtual_camera(tmp_path, fault) as (gopro, url), GoProHttp(url) as camera:
            assert camera.state().ready
            gopro.camera.begin_fault(fault)
            with pytest.raises(error, match=message):
                camera.state()


@pytest.mark.slow
@pytest.mark.parametrize(("filmed", "copied"), [((640, 360), (640, 360)), ((1280, 720), (320, 180))])
def test_small_copies_are_downloaded_with_the_original(
    tmp_path: Path, filmed: tuple[int, int], copied: tuple[int, int]
) -> None:
    """They have the same frames and telemetry, so that a video can be aligned by its copy."""
    from kitchensync.sensors.gopro.files.media import open_media

    with virtual_camera(tmp_path / "sim") as (gopro, url), GoProHttp(url) as camera:
        gopro.camera.kitchen.gopro_size = filmed
        camera.shutter(True)
        camera.shutter(False)
        camera.wait_idle()
        file = camera.media()[0]
        small = fetch_small(camera.entry, file, tmp_path / "proxies")
        assert [path.name for path in small] == ["GL010001.LRV", "GX010001.THM"]
        original = download(url, file, tmp_path / file.name)
    copy, film = open_media(small[0]), open_media(original.path)
    assert len(copy.frame_pts) == len(film.frame_pts)
    assert [(media.video.width, media.video.height) for media in (film, copy)] == [filmed, copied]
    assert np.array_equal(copy.gyroscope().xyz, film.gyroscope().xyz)


def test_a_camera_lost_before_its_small_copies_is_reported_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        entry = CameraAddress(f"http://127.0.0.1:{listener.getsockname()[1]}")
    with pytest.raises(CameraLost):
        fetch_small(entry, MediaFile("100GOPRO", "GX010001.MP4", 1, None), tmp_path)


def test_credentials_are_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "private" / "cameras.json"
    monkeypatch.setenv("KITCHENSYNC_CREDENTIALS", str(path))
    with pytest.raises(NoCredentials, match="gopro remember"):
        read_credentials("kitchen")
    values = {"address": "192.168.1.40", "username": "gopro", "password": "s3cret", "certificate": "PEM"}
    write_credentials("kitchen", **values)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    entry = read_credentials("kitchen")
    assert (entry.base_url, entry.password) == ("https://192.168.1.40", "s3cret")
    assert "s3cret" not in repr(entry)
    path.chmod(0o644)
    with pytest.raises(NoCredentials, match="chmod 600"):
        read_credentials("kitchen")


@pytest.mark.parametrize("url", ["ftp://x", "usb:", "usb:abc", "http//x", ""])
def test_invalid_addresses(url: str) -> None:
    with pytest.raises(SensorError):
        open_camera(url).state()


def test_settings_from_names() -> None:
    assert list(wanted_options({"lens": "linear"}).items())[:5] == [
        (134, 2),
        (108, 1),
        (2, 1),
        (3, 8),
        (121, 4),
    ]
    assert wanted_options()[83] == 0
    with pytest.raises(ValueError, match="lens\n.*'wide', 'linear'"):
        wanted_options({"lens": "round"})
