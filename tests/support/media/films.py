"""Films of the virtual camera for tests: small or 4K, several chapters, every sample known."""

from __future__ import annotations

from pathlib import Path

from camera_films import FilmPlan, Synthesis, synthesize

from kitchensync.virtual_kitchen.gopro.files.chapters import ChapterRule
from kitchensync.virtual_kitchen.gopro.files.sensors import Instruments
from kitchensync.virtual_kitchen.world.motion import simulated_motion

SMALL = {"width": 320, "height": 180}


def film(
    folder: Path, frames: int = 200, chapter_frames: int | None = 90, gps: bool = True, **more: object
) -> Synthesis:
    """Write a film into a folder; small unless the size is given."""
    rule = ChapterRule(frames=chapter_frames, hole_bytes=int(more.pop("hole_bytes", 0)))  # type: ignore[call-overload]
    instruments = more.pop("instruments", None) or Instruments(gps=gps, gps_days=9000.3)
    options = {**SMALL, "codec": b"avc1", "model": "hero11", **more}
    motion_seed = options.pop("motion_seed", None)
    motion = simulated_motion(int(motion_seed)) if motion_seed is not None else None  # type: ignore[call-overload]
    folder.mkdir(parents=True, exist_ok=True)
    return synthesize(folder, FilmPlan(frames, rule=rule, instruments=instruments, **options), motion)  # type: ignore[arg-type]
