"""Models of the virtual GoPro and the ids in their files."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kitchensync.virtual_kitchen.gopro.files.gpmf_writer import global_settings
from kitchensync.virtual_kitchen.gopro.files.mp4_writer import box
from kitchensync.virtual_kitchen.gopro.files.sensors import READ_OUT_MS


@dataclass(frozen=True)
class GoProModel:
    """Facts that a model reports."""

    number: int
    name: str
    firmware: str
    serial_prefix: str
    has_gps: bool = False
    drop_frame: bool = True

    def serial(self, seed: int) -> str:
        """Return a serial number; its last three digits determine the camera's USB address."""
        return f"{self.serial_prefix}{seed % 1_000_000:06d}"


MODELS = {
    "hero11": GoProModel(58, "HERO11 Black", "H22.01.02.32.00", "C3471325", has_gps=True, drop_frame=False),
    "hero12": GoProModel(62, "HERO12 Black", "H23.01.02.32.00", "C3501325"),
    "hero13": GoProModel(65, "HERO13 Black", "H24.01.02.02.00", "C3531325", has_gps=True),
}


def chapter_path(first: Path, chapter: int) -> Path:
    """Return the file of a chapter beside the first one's: GX010007.MP4, GX020007.MP4, ..."""
    return first.with_name(f"{first.name[:2]}{chapter:02d}{first.name[4:]}")


@dataclass(frozen=True)
class FileIds:
    """Ids of one recording of one camera; `seed` is the camera's own."""

    model: GoProModel
    seed: int
    local_epoch_s: int
    utc_offset_minutes: int

    @property
    def serial(self) -> str:
        """The camera's serial number."""
        return self.model.serial(self.seed)

    def _digest(self, purpose: str) -> bytes:
        of = f"{self.model.name}/{self.seed}/{purpose}"
        return hashlib.md5(of.encode(), usedforsecurity=False).digest()

    def leading_block(self) -> bytes:
        """Return the block at the start of mdat: firmware, lens serial, ids (476 bytes, mostly zero)."""
        head = self.model.firmware.encode().ljust(15, b"\0") + b"LAJ" + self.serial[-12:].encode()
        body = head.ljust(64, b"\0") + self._digest("camera") + self.serial.encode()
        return b"GPRO" + struct.pack("<I", 476) + body.ljust(468, b"\0")

    def user_data(self, width: int, height: int, hilights_ms: Sequence[int] = ()) -> bytes:
        """Return the boxes of moov/udta; hilights are marks of the user, in media milliseconds."""
        marks = list(hilights_ms)[:100]
        lens = b"LAJ" + self.serial[-12:].encode()
        take = self._digest(f"take {self.local_epoch_s}")
        muid = self._digest("camera") + struct.pack(">I", self.local_epoch_s & 0xFFFFFFFF) + take[:12]
        return b"".join(
            [
                box(b"FIRM", self.model.firmware.encode()),
                box(b"LENS", lens.ljust(48, b"\0")),
                box(b"CAME", self._digest("camera")),
                box(b"SETT", struct.pack(">III", 0xC200000C, 0x00104580, 0)),
                box(b"MUID", muid),
                box(b"HMMT", struct.pack(f">I{len(marks)}I", len(marks), *marks).ljust(404, b"\0")),
                box(b"BCID", bytes(36)),
                box(b"GUMI", take),
                box(b"GPMF", self.header(width, height, marks)),
            ]
        )

    def header(self, width: int, height: int, hilights_ms: Sequence[int] = ()) -> bytes:
        """Return the GPMF header with model, serial number, clock and picture settings."""
        device = {
            "FMWR": self.model.firmware,
            "LINF": "LAJ" + self.serial[-12:],
            "CASN": self.serial,
            "MINF": self.model.name,
        }
        video = {"OREN": "U", "EISE": "N", "EISA": "N/A", "VFOV": "W", "VRES": f"{width}x{height}"}
        clock = {"CDAT": self.local_epoch_s, "TZON": self.utc_offset_minutes}
        return global_settings(device, video, clock, READ_OUT_MS, hilights_ms)
