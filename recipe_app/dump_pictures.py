"""Read the QR frames of a dump from pictures or from a film of the tablet's screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recipe_app.errors import BadOperation

PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
FILMS = (".mp4", ".mov", ".mkv", ".webm", ".avi")


def is_seen(path: Path) -> bool:
    """Tell whether a file is a picture or a film."""
    return path.suffix.lower() in (*PICTURES, *FILMS)


def frames_in(path: Path) -> list[str]:
    """Return the texts of all frames that can be read, each once. Raises BadOperation when there are none."""
    import cv2

    detector = cv2.QRCodeDetector()
    found: dict[str, None] = {}
    for image in _images(path):
        text, _, _ = detector.detectAndDecode(image)
        if text.startswith("KS1"):
            found[text] = None
    if not found:
        raise BadOperation(f"{path.name}: no frame of a dump can be read in it; film the screen sharp and whole")
    return list(found)


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
