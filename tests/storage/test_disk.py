"""Large files go past the page cache and hold just what was given, whatever the sizes of its pieces."""

import errno
import fcntl
import os
import random
from pathlib import Path

import pytest

from kitchensync.storage.disk.durable import DIRECT_BYTES, O_DIRECT, Disk, write_whole

SIZES = [
    [DIRECT_BYTES],
    [DIRECT_BYTES + 1],
    [3 * DIRECT_BYTES - 1],
    [1, DIRECT_BYTES, 4095],
    [4096, 0, DIRECT_BYTES, 4096],
    [700] * 4000,
    [DIRECT_BYTES + 12_345, 1, 2 * DIRECT_BYTES + 77, 0],
]


class Watching(Disk):
    """Remembers of every write how many bytes it had and whether it was to go past the cache."""

    def __init__(self) -> None:
        self.writes: list[tuple[int, bool]] = []

    def write(self, handle, buffers) -> None:
        is_direct = bool(fcntl.fcntl(handle, fcntl.F_GETFL) & O_DIRECT)
        self.writes.append((sum(len(buffer) for buffer in buffers), is_direct))
        super().write(handle, buffers)


def has_direct_writing(folder: Path) -> bool:
    try:
        os.close(os.open(folder / "probe", os.O_WRONLY | os.O_CREAT | O_DIRECT))
    except OSError:
        return False
    return bool(O_DIRECT)


def pieces_of(sizes: list[int]) -> list[bytes]:
    source = random.Random(len(sizes))
    return [source.randbytes(size) for size in sizes]


@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: f"{len(sizes)} pieces, {sum(sizes)} bytes")
def test_a_large_file_holds_what_it_was_given(tmp_path, sizes):
    direct = has_direct_writing(tmp_path)
    pieces, disk = pieces_of(sizes), Watching()
    write_whole(tmp_path / "000001.h5", iter(pieces), ".part", disk, size=sum(sizes))
    assert (tmp_path / "000001.h5").read_bytes() == b"".join(pieces)
    whole_pages = [was_direct for size, was_direct in disk.writes if size % 4096 == 0]
    assert whole_pages == [direct] * (sum(sizes) // DIRECT_BYTES + (sum(sizes) % DIRECT_BYTES >= 4096))
    assert sum(size % 4096 != 0 for size, _ in disk.writes) == bool(sum(sizes) % 4096)


def test_a_small_file_goes_the_ordinary_way(tmp_path):
    disk = Watching()
    write_whole(tmp_path / "small", [bytes(4096)] * 3, ".part", disk, size=3 * 4096)
    assert disk.writes == [(3 * 4096, False)]


@pytest.mark.parametrize("refused_at", ["open", "write"])
def test_a_file_system_without_direct_writing_is_written_in_the_ordinary_way(
    tmp_path, monkeypatch, refused_at
):
    opened, written = os.open, os.writev

    def open_(path, flags, *more):
        if refused_at == "open" and flags & O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return opened(path, flags, *more)

    def writev(handle, views):
        if refused_at == "write" and fcntl.fcntl(handle, fcntl.F_GETFL) & O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return written(handle, views)

    monkeypatch.setattr(os, "open", open_)
    monkeypatch.setattr(os, "writev", writev)
    pieces = pieces_of([DIRECT_BYTES, 5, DIRECT_BYTES])
    write_whole(tmp_path / "file", pieces, ".part", size=sum(map(len, pieces)))
    assert (tmp_path / "file").read_bytes() == b"".join(pieces)


def test_a_short_write_goes_on_where_it_stopped(tmp_path, monkeypatch):
    """A disk may take less than it is given; what is left begins at no page then."""
    written = os.writev
    monkeypatch.setattr(os, "writev", lambda handle, views: written(handle, [views[0][:100_001]]))
    if has_direct_writing(tmp_path):  # which takes no odd length: as a kernel that stops in the middle
        monkeypatch.setattr(os, "writev", lambda handle, views: written(handle, [views[0][: 25 * 4096]]))
    pieces = pieces_of([2 * DIRECT_BYTES + 9])
    write_whole(tmp_path / "file", pieces, ".part", size=len(pieces[0]))
    assert (tmp_path / "file").read_bytes() == pieces[0]


def test_a_full_disk_leaves_nothing_of_a_large_file(tmp_path, monkeypatch):
    written, room = os.writev, [3]

    def writev(handle, views):
        room[0] -= 1
        if room[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return written(handle, views)

    monkeypatch.setattr(os, "writev", writev)
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "file", pieces_of([8 * DIRECT_BYTES]), ".part", size=8 * DIRECT_BYTES)
    assert list(tmp_path.iterdir()) == []
