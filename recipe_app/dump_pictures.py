"""Read the QR frames of a dump from pictures or from a film of the tablet's screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recipe_app.errors import BadOperation

PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
SCALES = (1, 0.7, 0.5, 1.5, 2)
FILMS = (".mp4", ".mov", ".mkv", ".webm", ".avi")


def is_seen(path: Path) -> bool:
    """Tell whether a file is a picture or a film."""
    return path.suffix.lower() in (*PICTURES, *FILMS)


def frames_in(path: Path) -> list[str]:
    """Return the texts of all frames that can be read, each once. Raises BadOperation when there are none."""
    found: dict[str, None] = {}
    for image in _images(path):
        if text := _read(image):
            found[text] = None
    if not found:
        raise BadOperation(
            f"{path.name}: no frame of a dump can be read in it; film the screen sharp and whole"
        )
    return list(found)


def _read(image: Any) -> str:
    """Read a frame by two detectors at several sizes: each misses some pictures that another one reads."""
    import cv2

    detectors = (cv2.QRCodeDetector(), cv2.QRCodeDetectorAruco())
    for scale in SCALES:
        seen = (
            image if scale == 1 else cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        )
        for detector in detectors:
            text, _, _ = detector.detectAndDecode(seen)
            if text.startswith("KS1"):
                return str(text)
    return ""


def _images(path: Path) -> Iterator[Any]:
    import cv2

    if path.suffix.lower() in PICTURES:
        image = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
        if image is not None:
            yield image
        return
    film = cv2.VideoCapture(str(path))
    try:
        while True:
            there, image = film.read()
            if not there:
                return
            yield cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    finally:
        film.release()
