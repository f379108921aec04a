"""From films of a board to a lens in a file: what `kitchensync calibrate gopro` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from kitchensync.calibration.estimate.board import Board, BoardSeen, Detector
from kitchensync.calibration.estimate.choice import choose
from kitchensync.calibration.estimate.intrinsics import Intrinsics, estimate, estimate_best
from kitchensync.calibration.jobs.board_films import BoardFilm, grey_frames, look_through
from kitchensync.calibration.jobs.board_pictures import coverage_picture, example_picture, write_png
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.storage.copies.derived import will_write
from kitchensync.storage.geometry.errors import Refused
from kitchensync.storage.reading.calibration_results import folder_of, save, unused

Progress = Callable[[str, float], None]
"""Called with a file's name and the seconds of it that are done."""


@dataclass(frozen=True)
class LensAnswer:
    """A lens, where it was put, and its picture."""

    answer: dict[str, Any]
    path: Path
    picture: Path


def calibrate_lens(
    films: Sequence[Path], board: Board, kind: str, data: Path, progress: Progress | None = None
) -> LensAnswer:
    """Estimate the lens that filmed a board and keep it in `data`; `kind` is "pinhole", "fisheye" or "auto".

    Raises Refused with the reason; an example picture then lies beside the camera's calibrations.
    """
    detector = Detector(board)
    looked = [look_through(path, detector, _for_file(progress, path)) for path in films]
    try:
        _check_films(looked)
        candidates = [candidate for film in looked for candidate in film.candidates]
        if not candidates:
            raise Refused(
                _nothing(looked), next((name for film in looked for name in film.without_board), None)
            )
        views, left_out = choose(candidates, board)
        found = _estimated(views, board, kind, left_out)
    except Refused as refusal:
        raise _with_picture(refusal, looked, detector, data) from refusal
    return _kept(found, views, left_out, looked, detector, data)


def _for_file(progress: Progress | None, path: Path) -> Callable[[float], None] | None:
    return None if progress is None else lambda seconds: progress(path.name, seconds)


def _check_films(films: Sequence[BoardFilm]) -> None:
    serials = {film.serial for film in films}
    if len(serials) > 1:
        raise Refused(f"films of several cameras ({', '.join(sorted(serials))}): calibrate each by itself")
    modes = {film.mode for film in films}
    if len(modes) > 1:
        odd = films[-1].candidates[0].seen.name if films[-1].candidates else None
        raise Refused(
            f"films of several lens modes ({', '.join(sorted(modes))}): calibrate each by itself", odd
        )


def _nothing(films: Sequence[BoardFilm]) -> str:
    why = next(
        (film.why_without for film in films if "no board" not in film.why_without), films[0].why_without
    )
    return f"the board is in none of the pictures: {why or 'the films are empty'}"


def _estimated(views: Sequence[BoardSeen], board: Board, kind: str, left_out: dict[str, str]) -> Intrinsics:
    try:
        return estimate_best(views, board) if kind == "auto" else estimate(views, board, kind)
    except Refused as refusal:
        kinds: dict[str, int] = {}
        for why in left_out.values():
            kinds[why] = kinds.get(why, 0) + 1
        words = ", ".join(
            f"{count} {why}" for why, count in sorted(kinds.items(), key=lambda item: -item[1])[:4]
        )
        reason = f"{refusal.reason} (pictures left out: {words})" if words else refusal.reason
        raise Refused(reason, refusal.example or next(iter(left_out), None)) from refusal


def _with_picture(refusal: Refused, films: Sequence[BoardFilm], detector: Detector, data: Path) -> Refused:
    """Write the picture that a refusal names, and name its file instead."""
    for film in films:
        if refusal.example is None or not refusal.example.startswith(f"{film.path.name} "):
            continue
        at_s = float(refusal.example.removeprefix(f"{film.path.name} ").removesuffix(" s"))
        media = open_media(film.path)
        wanted = min(range(len(media.frame_times_s)), key=lambda i: abs(float(media.frame_times_s[i]) - at_s))
        for index, grey in grey_frames(media):
            if index == wanted:
                folder = folder_of(data, film.serial)
                folder.mkdir(parents=True, exist_ok=True)
                path = unused(folder / f"refused-{film.path.stem}-{at_s:.2f}s.png")
                will_write(path)
                write_png(path, example_picture(grey, refusal.reason[:130], detector.find(grey, "")))
                return Refused(refusal.reason, str(path))
    return refusal


def _kept(
    found: Intrinsics,
    views: Sequence[BoardSeen],
    left_out: dict[str, str],
    films: Sequence[BoardFilm],
    detector: Detector,
    data: Path,
) -> LensAnswer:
    film = films[0]
    answer = {
        "device": film.model,
        "board": detector.board.words(),
        "board_layout": detector.layout,
        "films": [entry.path.name for entry in films],
        **lens_words(found),
    }
    answer["left_out"] = left_out | found.left_out
    path = save(data, film.serial, "lens", film.mode, _filmed(film), answer)
    picture = path.with_suffix(".png")
    write_png(picture, coverage_picture(found, views))
    return LensAnswer(answer | {"serial": film.serial, "mode": film.mode}, path, picture)


def _filmed(film: BoardFilm) -> datetime:
    """When it was filmed as the file says; cameras that know no zone are taken at their word."""
    try:
        told = datetime.fromisoformat(film.filmed.replace("Z", "+00:00"))
    except ValueError:
        return datetime.now(UTC)
    return told if told.tzinfo else told.replace(tzinfo=UTC)


def lens_words(found: Intrinsics) -> dict[str, Any]:
    """Return a lens as JSON."""
    lens = found.lens

    def named(covariance: np.ndarray) -> dict[str, float]:
        return dict(zip(lens.names, np.sqrt(np.maximum(np.diag(covariance), 0)).tolist(), strict=True))

    return {
        "model": lens.kind,
        "width": lens.width,
        "height": lens.height,
        "parameters": dict(zip(lens.names, lens.parameters.tolist(), strict=True)),
        "sigma": dict(zip(lens.names, found.sigma.tolist(), strict=True)),
        "sigma_parts": {
            "statistical": named(found.covariance - found.systematic),
            "systematic": named(found.systematic),
        },
        "degrees_of_freedom": dict(zip(lens.names, found.freedom.round(2).tolist(), strict=True)),
        "covariance": found.covariance.tolist(),
        "systematic_covariance": found.systematic.tolist(),
        "rms_px": round(found.rms_px, 4),
        "held_out_px": round(found.held_out_px, 4),
        "picture_sigma_px": {
            "median": round(float(np.nanmedian(found.picture_sigma_px)), 4),
            "largest": round(float(np.nanmax(found.picture_sigma_px)), 4),
        },
        "covered": round(found.covered, 3),
        "used": list(found.used),
        "left_out": found.left_out,
    }
