"""Flip a bit of a recording's file, and know another way where it lies: from the places that stock h5py gives."""

from __future__ import annotations

from pathlib import Path

import h5py


def places(path: Path) -> list[tuple[int, int, str]]:
    """Return (first byte, end, block) of everything in a sealed file that has a checksum of its own."""
    found = []
    with h5py.File(path) as file:
        index = file["index"][:]
        for name, dataset in file.items():
            start = dataset.id.get_offset()
            if name in ("index", "pose"):
                found.append((start, start + dataset.nbytes, name))
            elif name in ("data", "records"):
                for row in index:
                    first = start + int(row["offset"])
                    found.append((first, first + int(row["size"]), f"packet {row['seq']}"))
            elif name in ("head", "tail"):
                size = dataset.dtype.itemsize
                found += [
                    (start + n * size, start + (n + 1) * size, f"packet {n}") for n in range(len(index))
                ]
    return found


def block_at(path: Path, place: int) -> str | None:
    """Return the block that a byte of a whole recording belongs to, None where it is only part of a structure."""
    if path.suffix == ".MP4":
        first = place // (4 << 20) * (4 << 20)
        return f"bytes {first}-{min(first + (4 << 20), path.stat().st_size) - 1}"
    if path.suffix == ".jsonl":
        return f"line {path.read_bytes()[:place].count(10) + 1}"
    if path.suffix == ".json" or path.parent.name == "calibration":
        return "file"
    return next((block for start, stop, block in places(path) if start <= place < stop), None)


def stream_of(relative: str) -> str:
    folder = relative.rpartition("/")[0]
    if relative.endswith(".MP4"):
        return relative
    if folder.endswith("calibration"):
        return f"hololens/{Path(relative).stem}"
    return {"": "copies", "gopro": "gopro"}.get(folder, folder)


def flip(path: Path, place: int, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1 << bit]))
