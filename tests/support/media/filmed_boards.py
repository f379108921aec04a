"""Films of a calibration board, taken by a virtual GoPro of known optics: held still at each place, then moved on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from camera_films import FilmPlan, write_clip

from kitchensync.virtual_kitchen.gopro.files.encoders import VideoEncoder
from kitchensync.virtual_kitchen.world.boards import BoardCamera, DrawnBoard, looking_at
from kitchensync.virtual_kitchen.world.optics import Floats, Optics
from kitchensync.virtual_kitchen.world.seeds import generator

HELD_FRAMES = 12
CRF = 18


def places(
    optics: Optics, board: DrawnBoard, count: int, seed: int, nearest_m: float = 0.2, farthest_m: float = 0.45
) -> list[Floats]:
    """Return poses (4, 4) of a board shown near and far, slanted, all over the picture."""
    rng = generator(seed, "board")
    middle = (board.columns * board.square_m / 2, board.rows * board.square_m / 2)
    poses = []
    for _ in range(count):
        u, v = rng.uniform(0.1, 0.9, 2) * [optics.width, optics.height]
        tilt = (float(rng.uniform(-0.7, 0.7)), float(rng.uniform(-0.7, 0.7)))
        distance_m = float(rng.uniform(nearest_m, farthest_m))
        poses.append(
            looking_at(board, distance_m, tilt, float(rng.uniform(-0.4, 0.4)), middle, optics.ray(u, v))
        )
    return poses


def film_board(
    folder: Path,
    optics: Optics,
    board: DrawnBoard,
    poses: Sequence[Floats],
    seed: int = 1,
    blur_px: float = 0.6,
    mirrored: bool = False,
    start_world_s: float = 0.0,
) -> Path:
    """Write an MP4 of a HERO12 that sees the board at each pose for 12 frames; return its path."""
    film = FilmPlan(
        len(poses) * HELD_FRAMES,
        optics.width,
        optics.height,
        seed=seed,
        number=42,
        start_world_s=start_world_s,
    )
    encoder = VideoEncoder(optics.width, optics.height, CRF)
    pictures = _pictures(optics, board, poses, seed, blur_px, mirrored)
    samples = _encoded(encoder, pictures)
    made = write_clip(folder, film, samples, encoder.configuration, [])
    return Path(made.chapters[0].path)


def _pictures(
    optics: Optics, board: DrawnBoard, poses: Sequence[Floats], seed: int, blur_px: float, mirrored: bool
) -> Iterator[np.ndarray]:
    camera, rng = BoardCamera(optics, board), generator(seed, "board noise")
    chroma = np.full((optics.height // 2, optics.width), 128, np.uint8)
    for pose in poses:
        picture = camera.see(pose, blur_px=blur_px, rng=rng)
        if mirrored:
            picture = np.ascontiguousarray(picture[:, ::-1])
        yield np.concatenate([picture, chroma])


def _encoded(encoder: VideoEncoder, pictures: Iterator[np.ndarray]) -> Iterator[tuple[bytes, bool]]:
    frame = 0
    for picture in pictures:
        for _ in range(HELD_FRAMES):
            yield from encoder.encode(frame, picture)
            frame += 1
    yield from encoder.flush()
