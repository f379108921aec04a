"""Calibrate a lens from videos of a board: `kitchensync calibrate gopro`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kitchensync.calibration.estimate.board import Board, BoardDetection, Detector
from kitchensync.calibration.estimate.choice import choose
from kitchensync.calibration.estimate.intrinsics import Intrinsics, estimate, estimate_best
from kitchensync.calibration.jobs.board_films import BoardFilm, grey_frames, search_board
from kitchensync.calibration.jobs.board_pictures import coverage_picture, example_picture, write_png
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.storage.copies.derived import will_write
from kitchensync.storage.geometry.errors import Refused
from kitchensync.storage.reading.calibration_results import folder_of, save, unused

Progress = Callable[[str, float], None]
"""Called with a file's name and the seconds of it that are searched."""


@dataclass(frozen=True)
class LensAnswer:
    """A lens and the files with it."""

    answer: dict[str, Any]
    path: Path
    picture: Path


def calibrate_lens(
    films: Sequence[Path], board: Board, kind: str, data: Path, progress: Progress | None = None
) -> LensAnswer:
    """Estimate a lens from videos of a board and store it in `data`; `kind` is "pinhole", "fisheye" or "auto".

    Raises Refused; an example picture is then written beside the camera's calibrations.
    """
    detector = Detector(board)
    searched = [
        search_board(path, detector, partial(progress, path.name) if progress else None) for path in films
    ]
    try:
        _check_films(searched)
        candidates = [candidate for film in searched for candidate in film.candidates]
        if not candidates:
            example = next((name for film in searched for name in film.without_board), None)
            reasons = (film.why_without for film in searched if "no board" not in film.why_without)
            why = next(reasons, searched[0].why_without) or "the films are empty"
            raise Refused(f"the board is in none of the pictures: {why}", example)
        views, left_out = choose(candidates, board)
        intrinsics = _estimate(views, board, kind, left_out)
    except Refused as refusal:
        raise _with_picture(refusal, searched, detector, data) from refusal
    return _save(intrinsics, views, left_out, searched, detector, data)


def _check_films(films: Sequence[BoardFilm]) -> None:
    serials = {film.serial for film in films}
    if len(serials) > 1:
        raise Refused(f"films of several cameras ({', '.join(sorted(serials))}): calibrate each by itself")
    modes = {film.mode for film in films}
    if len(modes) > 1:
        odd = films[-1].candidates[0].view.name if films[-1].candidates else None
        raise Refused(
            f"films of several lens modes ({', '.join(sorted(modes))}): calibrate each by itself", odd
        )


def _estimate(
    views: Sequence[BoardDetection], board: Board, kind: str, left_out: dict[str, str]
) -> Intrinsics:
    try:
        return estimate_best(views, board) if kind == "auto" else estimate(views, board, kind)
    except Refused as refusal:
        counts = Counter(left_out.values()).most_common(4)
        listed = ", ".join(f"{count} {why}" for why, count in counts)
        reason = f"{refusal.reason} (pictures left out: {listed})" if listed else refusal.reason
        raise Refused(reason, refusal.example or next(iter(left_out), None)) from refusal


def _with_picture(refusal: Refused, films: Sequence[BoardFilm], detector: Detector, data: Path) -> Refused:
    """Write the example frame of a refusal as a picture; return the refusal with the picture's path."""
    for film in films:
        if refusal.example is None or not refusal.example.startswith(f"{film.path.name} "):
            continue
        at_s = float(refusal.example.removeprefix(f"{film.path.name} ").removesuffix(" s"))
        media = open_media(film.path)
        nearest = min(
            range(len(media.frame_times_s)), key=lambda i: abs(float(media.frame_times_s[i]) - at_s)
        )
        for index, grey in grey_frames(media):
            if index == nearest:
                folder = folder_of(data, film.serial)
                folder.mkdir(parents=True, exist_ok=True)
                path = unused(folder / f"refused-{film.path.stem}-{at_s:.2f}s.png")
                will_write(path)
                write_png(path, example_picture(grey, refusal.reason[:130], detector.find(grey, "")))
                return Refused(refusal.reason, str(path))
    return refusal


def _save(
    intrinsics: Intrinsics,
    views: Sequence[BoardDetection],
    left_out: dict[str, str],
    films: Sequence[BoardFilm],
    detector: Detector,
    data: Path,
) -> LensAnswer:
    film = films[0]
    answer = {
        "device": film.model,
        "board": detector.board.text(),
        "board_layout": detector.layout,
        "films": [entry.path.name for entry in films],
        **lens_facts(intrinsics),
    }
    answer["left_out"] = left_out | intrinsics.left_out
    try:
        filmed = datetime.fromisoformat(film.filmed.replace("Z", "+00:00"))
    except ValueError:
        filmed = datetime.now(UTC)
    filmed = filmed if filmed.tzinfo else filmed.replace(tzinfo=UTC)
    path = save(data, film.serial, "lens", film.mode, filmed, answer)
    picture = path.with_suffix(".png")
    write_png(picture, coverage_picture(intrinsics, views))
    return LensAnswer(answer | {"serial": film.serial, "mode": film.mode}, path, picture)


def lens_facts(intrinsics: Intrinsics) -> dict[str, Any]:
    """Return a lens as JSON."""
    lens = intrinsics.lens

    def named(covariance: np.ndarray) -> dict[str, float]:
        return dict(zip(lens.names, np.sqrt(np.maximum(np.diag(covariance), 0)).tolist(), strict=True))

    return {
        "model": lens.kind,
        "width": lens.width,
        "height": lens.height,
        "parameters": dict(zip(lens.names, lens.parameters.tolist(), strict=True)),
        "sigma": dict(zip(lens.names, intrinsics.sigma.tolist(), strict=True)),
        "sigma_parts": {
            "statistical": named(intrinsics.covariance - intrinsics.systematic),
            "systematic": named(intrinsics.systematic),
        },
        "degrees_of_freedom": dict(zip(lens.names, intrinsics.freedom.round(2).tolist(), strict=True)),
        "covariance": intrinsics.covariance.tolist(),
        "systematic_covariance": intrinsics.systematic.tolist(),
        "rms_px": round(intrinsics.rms_px, 4),
        "held_out_px": round(intrinsics.held_out_px, 4),
        "picture_sigma_px": {
            "median": round(float(np.nanmedian(intrinsics.picture_sigma_px)), 4),
            "largest": round(float(np.nanmax(intrinsics.picture_sigma_px)), 4),
        },
        "covered": round(intrinsics.covered, 3),
        "used": list(intrinsics.used),
        "left_out": intrinsics.left_out,
    }
