"""Power cuts at every moment of sealing: what was acknowledged is there, everything there opens.

Three ways to check one thing: a model of a disk that keeps no more than fsync promises; the same model with
drainers that do it wrong (they must be caught); and a mounted file system whose image is copied while it works.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from disk_model import TracingDisk, choices, remains
from sealed_chunks import image_of

from kitchensync.storage.chunks.chunk_reader import Chunk, chunk_paths
from kitchensync.storage.chunks.chunk_writer import Packet, prepare_folder, seal
from kitchensync.storage.disk.durable import make_durable_folders
from kitchensync.storage.manifest import write_json
from kitchensync.storage.names import chunk_name
from kitchensync.storage.verify import verify

STREAM = "hololens/pv"
SEEDS = range(6)


def packet(number: int) -> Packet:
    return Packet(number, 1, 333_333 * number, 33_333_300 * number, 1, b"%06d" % number * 9, bytes(64))


def drain(root: Path, disk: TracingDisk, chunks: int = 3, each: int = 4) -> None:
    """Seal and acknowledge as the drainer does; a restart is in the middle."""
    recording = root / "take"
    make_durable_folders(recording, root, disk)
    manifest = {"schema": "recording/1", "recording": "take", "state": "recording", "files": {}}
    write_json(recording / "recording.json", manifest | {"streams": {STREAM: {}}, "devices": {}}, disk)
    for number in range(chunks):
        if number in (0, 2):
            folder = prepare_folder(recording, STREAM, disk)
        rows = [packet(n) for n in range(number * each, (number + 1) * each)]
        seal(folder, number + 1, rows, {"stream": STREAM}, disk)
        disk.note("acknowledged", (number + 1) * each)


def stored(recording: Path) -> list[int]:
    """Read back what is there; every file must open, every byte be what it was."""
    seqs: list[int] = []
    for path in chunk_paths(recording / STREAM):
        with Chunk(path) as chunk:
            assert chunk.damage() == [], path
            for row, payload in zip(chunk.index, chunk.payloads(), strict=True):
                assert payload == b"%06d" % row["seq"] * 9
                seqs.append(int(row["seq"]))
    return seqs


def check_every_cut(tmp_path: Path, drainer: Callable[[Path, TracingDisk], None]) -> int:
    """Cut behind every entry of the log, in several ways each; return how many disks were built."""
    root, disk = tmp_path / "live", TracingDisk()
    root.mkdir()
    drainer(root, disk)
    built = 0
    for cut in range(len(disk.log) + 1):
        acknowledged = max((e.data for e in disk.log[:cut] if e.what == "acknowledged"), default=0)
        for seed in SEEDS:
            left = tmp_path / f"left-{cut}-{seed}"
            left.mkdir()
            remains(disk.log[:cut], root, left, choices(seed))
            seqs = stored(left / "take")
            assert seqs == list(range(len(seqs))), "stored once, in order, without holes"
            assert len(seqs) >= acknowledged, f"cut {cut}: {acknowledged} acknowledged, {len(seqs)} there"
            built += 1
            if seqs and cut % 5 == seed and (left / "take/recording.json").exists():
                answer = verify(left / "take")
                assert answer["corrupt"] == []
                assert any("never closed" in reason for reason in answer["reasons"])
    return built


@pytest.mark.slow
def test_after_a_cut_at_any_moment_all_acknowledged_packets_are_there_and_open(tmp_path):
    assert check_every_cut(tmp_path, drain) > 150


def acknowledges_before_sync(root: Path, disk: TracingDisk) -> None:
    folder = prepare_folder(root / "take", STREAM, disk)
    handle = disk.create(folder / "000001.h5.part")
    disk.write(handle, [image_of([packet(n) for n in range(4)], {"stream": STREAM})])
    disk.rename(folder / "000001.h5.part", folder / chunk_name(1))
    disk.note("acknowledged", 4)
    disk.sync(handle)
    disk.close(handle)
    disk.sync_folder(folder)


def forgets_the_folder(root: Path, disk: TracingDisk) -> None:
    class NoFolderSync(TracingDisk):
        def sync_folder(self, path: Path) -> None:
            if path.name != "pv":
                super().sync_folder(path)

    disk.__class__ = NoFolderSync
    drain(root, disk)


def drops_a_packet(root: Path, disk: TracingDisk) -> None:
    folder = prepare_folder(root / "take", STREAM, disk)
    seal(folder, 1, [packet(n) for n in (0, 1, 3)], {"stream": STREAM}, disk)
    disk.note("acknowledged", 4)


def writes_a_block_twice(root: Path, disk: TracingDisk) -> None:
    folder = prepare_folder(root / "take", STREAM, disk)
    for number in (1, 2):
        seal(folder, number, [packet(n) for n in range(4)], {"stream": STREAM}, disk)
    disk.note("acknowledged", 4)


@pytest.mark.parametrize(
    "mutant", [acknowledges_before_sync, forgets_the_folder, drops_a_packet, writes_a_block_twice]
)
def test_a_drainer_that_does_it_wrong_is_caught(tmp_path, mutant):
    def start(root: Path, disk: TracingDisk) -> None:
        make_durable_folders(root / "take", root, disk)
        mutant(root, disk)

    with pytest.raises(Exception, match=r"acknowledged|stored once|damaged chunk"):
        check_every_cut(tmp_path, start)


@pytest.mark.slow
def test_the_books_of_a_closed_recording_catch_both_mutants(tmp_path):
    for name, sealed_rows in (("dropped", [[0, 1, 3], [4, 5]]), ("twice", [[0, 1, 2, 3], [2, 3, 4, 5]])):
        recording = tmp_path / name
        folder = prepare_folder(_made(recording), STREAM)
        for number, rows in enumerate(sealed_rows):
            seal(folder, number + 1, [packet(n) for n in rows], {"stream": STREAM})
        end = json.dumps({"stream": STREAM, "note": "end", "reason": "x", "received": 6}).encode()
        seal(prepare_folder(recording, "ledger/hololens"), 1, [Packet(0, 1, 0, 0, 1, end, b"")], {})
        manifest = {"schema": "recording/1", "recording": name, "state": "complete", "files": {}}
        write_json(recording / "recording.json", manifest | {"streams": {STREAM: {}}, "devices": {}})
        answer = verify(recording)
        facts = answer["streams"][STREAM]
        assert answer["status"] == "FAIL"
        assert (facts["missing"], facts["duplicates"]) == (([[2, 2]], 0) if name == "dropped" else ([], 2))


def _made(path: Path) -> Path:
    path.mkdir()
    return path


ON_A_REAL_DISK = """
import shutil, sys
from pathlib import Path
from kitchensync.storage.chunks.chunk_writer import Packet, prepare_folder, seal
from kitchensync.storage.disk.durable import make_durable_folders
image, mounted, copies = map(Path, sys.argv[1:])
make_durable_folders(mounted / "take", mounted)
folder = prepare_folder(mounted / "take", "hololens/pv")
for number in range(8):
    rows = [Packet(n, 1, n, n, 1, b"%06d" % n * 9, bytes(64)) for n in range(number * 4, number * 4 + 4)]
    seal(folder, number + 1, rows, {"stream": "hololens/pv"})
    (mounted / "take" / f"unsynced-{number}").write_bytes(bytes(50_000))
    shutil.copyfile(image, copies / f"{(number + 1) * 4:03d}.img")
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a disk image needs root")
def test_copies_of_a_mounted_disk_hold_everything_acknowledged(tmp_path):
    image, mounted, copies, out = (tmp_path / name for name in ("image", "mounted", "copies", "out"))
    for folder in (mounted, copies, out):
        folder.mkdir()
    script = f"""
truncate -s 16M {image} && mkfs.ext4 -q -F {image} && mount -o loop {image} {mounted} || exit 77
{sys.executable} -c '{ON_A_REAL_DISK.replace(chr(39), chr(34))}' {image} {mounted} {copies}; code=$?
umount {mounted}
for copy in {copies}/*.img; do
    mount -o loop $copy {mounted} || exit 78
    cp -r {mounted}/take {out}/$(basename $copy .img)
    umount {mounted}
done
exit $code"""
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("this computer mounts no disk images")
    assert done.returncode == 0, done.stderr
    found = {int(path.name): stored(path) for path in out.iterdir()}
    assert found == {count: list(range(count)) for count in range(4, 36, 4)}
