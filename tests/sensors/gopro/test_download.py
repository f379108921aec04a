"""Downloads from the camera of `conftest.py` are continued or refused, and never incomplete under the final name."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kitchensync.sensors.errors import CameraRefused, DownloadFailed, UnsafeName
from kitchensync.sensors.gopro.control.camera import MediaFile
from kitchensync.sensors.gopro.control.download import Downloaded, download

Gopro = tuple[Any, str]


def media_file(camera: Any, name: str = "GX010001.MP4") -> MediaFile:
    return MediaFile("100GOPRO", name, len(camera.file), None)


def fetch(gopro: Gopro, target: Path, progress: Callable[[int, int], None] | None = None) -> Downloaded:
    return download(gopro[1], media_file(gopro[0]), target, progress, read_timeout_s=2, back_off_s=0.01)


def test_a_complete_file(gopro: Gopro, tmp_path: Path) -> None:
    progress: list[tuple[int, int]] = []
    got = fetch(gopro, tmp_path, lambda here, total: progress.append((here, total)))
    assert got.path == tmp_path / "GX010001.MP4"
    assert got.path.read_bytes() == gopro[0].file
    assert got.sha256 == hashlib.sha256(gopro[0].file).hexdigest()
    assert progress[-1] == (len(gopro[0].file), len(gopro[0].file))
    assert sorted(progress) == progress
    assert [path.name for path in tmp_path.iterdir()] == ["GX010001.MP4"]
    again = fetch(gopro, tmp_path / "GX010001.MP4")
    assert again.sha256 == got.sha256
    assert len(gopro[0].ranges) == 1


@pytest.mark.parametrize("ignore_range", [False, True])
def test_cuts_are_continued(gopro: Gopro, tmp_path: Path, ignore_range: bool) -> None:
    gopro[0].cuts, gopro[0].ignore_range = [100_000, 0, 120_000], ignore_range
    got = fetch(gopro, tmp_path / "here.MP4")
    assert got.path.read_bytes() == gopro[0].file
    assert got.sha256 == hashlib.sha256(gopro[0].file).hexdigest()
    assert gopro[0].ranges[0] is None
    assert ignore_range or None not in gopro[0].ranges[1:]


def test_a_later_call_continues_a_part(gopro: Gopro, tmp_path: Path) -> None:
    gopro[0].cuts = [150_000] + [0] * 20
    with pytest.raises(DownloadFailed, match="150000 of .* bytes were received; run it again"):
        fetch(gopro, tmp_path)
    part = tmp_path / "GX010001.MP4.part"
    assert part.read_bytes() == gopro[0].file[:150_000]
    gopro[0].cuts, gopro[0].ranges = [], []
    assert fetch(gopro, tmp_path).path.read_bytes() == gopro[0].file
    assert gopro[0].ranges == [f"bytes={150_000 - 65_536}-"]
    assert not part.exists()


class KeptBytes:
    """Keeps a copy of all bytes."""

    def __init__(self) -> None:
        self.bytes = b""

    def update(self, block: memoryview, /) -> None:
        self.bytes += bytes(block)

    def restart(self) -> None:
        self.bytes = b""


@pytest.mark.parametrize("ignore_range", [False, True])
def test_an_observer_sees_every_byte_once(gopro: Gopro, tmp_path: Path, ignore_range: bool) -> None:
    gopro[0].cuts, gopro[0].ignore_range = [100_000, 0, 120_000], ignore_range
    (tmp_path / "GX010001.MP4.part").write_bytes(gopro[0].file[:70_000])
    observer = KeptBytes()
    for _ in range(2):  # fetched, then here already
        download(gopro[1], media_file(gopro[0]), tmp_path, observer=observer, back_off_s=0.01)
        assert observer.bytes == gopro[0].file
        observer.restart()


@pytest.mark.parametrize("old_part", [b"x" * 1000, b"x" * 500_000], ids=["another file", "too long"])
def test_a_part_of_another_file_is_discarded(gopro: Gopro, tmp_path: Path, old_part: bytes) -> None:
    (tmp_path / "GX010001.MP4.part").write_bytes(old_part)
    assert fetch(gopro, tmp_path).path.read_bytes() == gopro[0].file


def test_a_file_without_index_is_refused(gopro: Gopro, tmp_path: Path) -> None:
    gopro[0].file = gopro[0].file[:-13] + bytes(13)
    with pytest.raises(DownloadFailed, match="moov"):
        fetch(gopro, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_another_existing_file_is_never_overwritten(gopro: Gopro, tmp_path: Path) -> None:
    (tmp_path / "GX010001.MP4").write_bytes(b"precious")
    with pytest.raises(DownloadFailed, match="move it away"):
        fetch(gopro, tmp_path)
    assert (tmp_path / "GX010001.MP4").read_bytes() == b"precious"


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("100GOPRO", "../../etc/passwd"),
        ("..", "GX010001.MP4"),
        ("100GOPRO", "a/b.MP4"),
        ("100GOPRO", "..MP4"),
        ("100GOPRO", ""),
        ("100GOPRO", "GX01\n.MP4"),
        ("/etc", "GX010001.MP4"),
    ],
)
def test_unsafe_names_are_refused(gopro: Gopro, tmp_path: Path, folder: str, name: str) -> None:
    with pytest.raises(UnsafeName) as refused:
        download(gopro[1], MediaFile(folder, name, 10, None), tmp_path)
    assert "\n" not in str(refused.value)
    assert gopro[0].requests == []


def test_a_full_disk_and_a_missing_file_are_named(gopro: Gopro, tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match="no such file or directory"):
        fetch(gopro, tmp_path / "nowhere" / "x.MP4")
    gopro[0].body_of["/videos/DCIM/100GOPRO/GX010009.MP4"] = (404, b"")
    with pytest.raises(CameraRefused, match="HTTP 404"):
        download(gopro[1], media_file(gopro[0], "GX010009.MP4"), tmp_path)


def test_more_bytes_than_announced(gopro: Gopro, tmp_path: Path) -> None:
    short = MediaFile("100GOPRO", "GX010001.MP4", 1000, None)
    with pytest.raises(DownloadFailed, match="more than the 1000 bytes"):
        download(gopro[1], short, tmp_path)
