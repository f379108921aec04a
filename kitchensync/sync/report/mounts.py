"""Where the cameras sit on the head, for a report: what `kitchensync calibrate check` left in `sync/mounts.json`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from kitchensync.shell.files_on_disk import read_plain
from kitchensync.shell.untrusted_json import MOST_BYTES, load_json
from kitchensync.storage.names import is_path_inside
from kitchensync.sync.report.facts import ShownVerdict
from kitchensync.sync.report.pictures import Thumbnail, data_address
from kitchensync.sync.report.plots import Axis, Figure, Plot

KEPT = Path("sync") / "mounts.json"
SCHEMA = "calibrate-check/1"
CALIBRATIONS = "../calibrations/"
"""The only folder outside of the recording of which a report shows pictures."""
MOVED_DEG = 0.5  # the limit of `calibrate check` (`motion.MOVED_DEG`)
KNOWN_PARTS = 2  # movement of a camera shows only as a difference between two parts
QUALITY = 82
CAPTIONS = {
    "lens": "Lens: where the corners of the board lay, how far off they are, and how well a ray is known",
    "rig": "Mount: corners of the board in both cameras, and how far off they are",
}


@dataclass(frozen=True)
class ShownMount:
    """One camera file: its words, its numbers, its turning over time, and pictures of the calibrations that count."""

    file: str
    words: str
    facts: list[tuple[str, str]]
    figures: list[Figure]
    pictures: list[Thumbnail]


@dataclass(frozen=True)
class Mounts:
    """All cameras of a recording, and the verdict about them."""

    verdict: ShownVerdict
    mounts: list[ShownMount] = field(default_factory=list)


def read_mounts(recording: Path) -> Mounts | None:
    """Read the kept check; None when there is none."""
    try:
        answer = load_json(recording / KEPT)
        if answer["schema"] != SCHEMA:
            raise ValueError(f"not of schema {SCHEMA}")
        mounts = []
        for mount in answer["mounts"]:
            figures = [_turning(mount["minutes"])] if mount["minutes"] else []
            pictures = [_picture(recording, mount[part], words) for part, words in CAPTIONS.items()]
            found = [picture for picture in pictures if picture is not None]
            shown = ShownMount(mount["file"], mount["words"], list(_facts(mount)), figures, found)
            mounts.append(shown)
        unsure = [
            f"{mount['file']}: the film is too short, or the head turned too little, to compare its parts"
            for mount in answer["mounts"]
            if sum(minute["turned_deg"] is not None for minute in mount["minutes"]) < KNOWN_PARTS
        ]
        if answer["status"] == "FAIL":
            words = "The mount could not be checked."
            return Mounts(ShownVerdict("not checked", "none", words, answer["reasons"]))
        if answer["status"] == "WARN":
            words = "A camera did not stay where it was calibrated to be: see below."
            verdict = ShownVerdict("check", "warn", words, answer["reasons"])
        elif unsure:
            verdict = ShownVerdict("not known", "none", "Nobody can tell whether a camera moved.", unsure)
        else:
            more = [mount.words for mount in mounts if "never calibrated" in mount.words]
            words = "Every camera stayed where it was on the head."
            verdict = ShownVerdict("in place", "good", words, more)
        return Mounts(verdict, mounts)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        text = f"{KEPT.name} cannot be read ({error}); run `kitchensync calibrate check` again"
        return Mounts(ShownVerdict("not known", "warn", text))


def _facts(mount: dict[str, Any]) -> Iterator[tuple[str, str]]:
    lens, rig = mount["lens"], mount["rig"]
    if "angle_deg" in mount:
        turned = f"{mount['angle_deg']:.2f} ± {_two(mount['sigma_deg'])}° from the front camera"
        yield "Turned, by motion", turned
    if rig is None:
        yield "Mount", "not calibrated; kitchensync calibrate rig finds it"
    else:
        place = f"{rig['distance_mm']:.1f} ± {_two(rig['sigma_mm'], 0.1)} mm away"
        turn = f"turned {rig['angle_deg']:.2f} ± {_two(rig['sigma_deg'])}°"
        yield "Mount, by board", f"{place}, {turn}; of {rig['measured_utc'][:10]} ({rig['recording']})"
        if "turned_deg" in rig:
            yield "Board against motion", f"{rig['turned_deg']:.2f}° apart, {rig['limit_deg']:.2f}° allowed"
    if lens is None:
        yield "Lens", f"not calibrated in mode {mount['mode']}; kitchensync calibrate gopro finds it"
    else:
        known = f"a ray is known to {lens['picture_sigma_px']['median']:.2f} px (one sigma)"
        yield "Lens", f"{lens['model']}, {known}; of {lens['measured_utc'][:10]}, {lens['views']} views"
    yield "Camera", f"{mount['serial']}, {mount['mode']}"


def _two(sigma: float, least: float = 0.01) -> str:
    """Write two sigmas, never as nothing."""
    return f"{max(2 * sigma, least):.{len(str(least)) - 2}f}"


def _turning(minutes: list[dict[str, float | None]]) -> Figure:
    """Draw how far each minute is turned against the whole recording, with two sigmas."""
    at = np.array([minute["middle_s"] for minute in minutes], np.float64) / 60
    turned = np.array([minute["turned_deg"] for minute in minutes], np.float64)
    doubt = 2 * np.array([minute["sigma_deg"] for minute in minutes], np.float64)
    known = turned[np.isfinite(turned)]
    top = max(MOVED_DEG * 1.3, float(np.max(known, initial=0.0)) * 1.15)
    end = float(at[-1] + (at[1] - at[0]) / 2) if len(at) > 1 else float(2 * at[0])
    plot = Plot(Axis(0.0, end, "minutes"), Axis(0.0, top, "turned (degrees)"), "Turn against the whole")
    plot.level(MOVED_DEG, "limit")
    plot.error_bars(at, turned, np.minimum(doubt, turned))
    plot.dots(at, turned)
    caption = "How far each part of the recording is turned against the whole, by motion, with two sigmas."
    return plot.figure(f"{caption} Dotted: from here on a camera counts as moved.")


def _picture(recording: Path, about: dict[str, Any] | None, caption: str) -> Thumbnail | None:
    """Return a calibration's picture for the page; None when it is not there any more."""
    if about is None or not about.get("picture"):
        return None
    name = about["picture"]
    if not name.startswith(CALIBRATIONS) or not is_path_inside(name.removeprefix(CALIBRATIONS)):
        raise ValueError(f"names {name[:100]!r}, which is no picture of a calibration")
    try:
        picture = cv2.imdecode(np.frombuffer(read_plain(recording / name, MOST_BYTES), np.uint8), 1)
    except FileNotFoundError:
        return None
    except cv2.error as error:
        raise ValueError(f"{name}: {error.err}") from error
    if picture is None:
        raise ValueError(f"{name}: is no picture")
    return Thumbnail(data_address(np.asarray(picture, np.uint8), QUALITY), f"{caption}. {about['file']}")
