"""Read the QR frames of a dump from pictures or from a film of the tablet's screen, in a process apart."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kitchensync.dataset.errors import BadOperation
from kitchensync.recipe_app.exchange.dumps import frame_of
from kitchensync.sensors.process_apart import Bounds, OutOfTime, ToldApart, Unread, ask_once

PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
SCALES = (1, 0.7, 0.5, 1.5, 2)
FILMS = (".mp4", ".mov", ".mkv", ".webm", ".avi")
APART_S = 0.1
"""The tablet shows a code for 0.4 s: of a film pictures so far apart are looked at first, the others if need be."""
MOST_PICTURES = 3000
"""Pictures of a film that are looked at: five minutes."""
MOST_PIXELS = 50_000_000
"""Of a picture, as telephones take them."""
LOOKED_AT_PIXELS = 12_000_000
"""A larger picture is made smaller first; none is made larger than this."""
PICTURE = Bounds(30.0, 1 << 30, {"OPENCV_IO_MAX_IMAGE_PIXELS": str(MOST_PIXELS)})
FILM = Bounds(
    600.0,
    2 << 30,
    {"OPENCV_FFMPEG_CAPTURE_OPTIONS": "protocol_whitelist;file|format_whitelist;mov,matroska,webm,avi"},
)
"""A list of other files is no film."""
TOO_LARGE = "too large"

_one_film = threading.Lock()


def is_film(path: Path) -> bool:
    """Tell by its name whether a file is a film."""
    return path.suffix.lower() in FILMS


def is_seen(path: Path) -> bool:
    """Tell by its name whether a file is a picture or a film."""
    return path.suffix.lower() in PICTURES or is_film(path)


def frames_in(path: Path, *, film: bool, name: str | tuple[str, ...]) -> list[str]:
    """Return the texts of all frames that can be read, each once; a film is left when it has given all of a dump.

    `name` is what people call the file, or words of ours for it. Raises BadOperation when there are none, or the
    file takes more pixels, memory or time than a picture of a screen.
    """
    bounds = FILM if film else PICTURE
    with _one_film:  # reading takes a core; a second one waits for its turn
        try:
            found = ask_once(f"{__name__}:tell_frames", bounds, os.fspath(path.absolute()), film).said
        except OutOfTime as error:
            seconds = round(bounds.seconds)
            raise BadOperation(
                "{name}: reading it takes longer than {seconds} s; send less of it",
                name=name,
                seconds=seconds,
            ) from error
        except Unread as error:
            raise BadOperation(
                "{name}: reading it takes too much memory or crashes; take the picture anew", name=name
            ) from error
    if found == TOO_LARGE:
        raise BadOperation(
            "{name}: has more than {pixels} megapixels; send a smaller picture",
            name=name,
            pixels=MOST_PIXELS // 1_000_000,
        )
    if not found:
        raise BadOperation(
            "{name}: no frame of a dump can be read in it; film the screen sharp and whole", name=name
        )
    return [str(text) for text in found]


def tell_frames(path: str, film: bool) -> ToldApart:
    """Read what can be read, in this process."""
    import cv2

    try:
        return ToldApart(_frames(_pictures_of(Path(path)) if film else _picture(Path(path))))
    except cv2.error as error:
        if error.func == "validateInputImageSize":
            return ToldApart(TOO_LARGE)
        if error.code == cv2.Error.StsNoMem:
            raise MemoryError from error
        raise


def _frames(images: Iterator[Any]) -> list[str]:
    found: dict[str, None] = {}
    for image in images:
        text = _read(_smaller(image))
        if text and text not in found:
            found[text] = None
            if _is_whole(found):
                break
    return list(found)


def _smaller(image: Any) -> Any:
    import cv2

    scale = (LOOKED_AT_PIXELS / image.size) ** 0.5
    return image if scale >= 1 else cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)


def _is_whole(found: dict[str, None]) -> bool:
    """Return whether these are all frames of each of their dumps."""
    places: dict[tuple[str, int], set[int]] = {}
    for text in found:
        frame = frame_of(text)
        assert frame is not None  # only such are found
        places.setdefault((frame.id, frame.count), set()).add(frame.number)
    return all(len(numbers) == count for (_, count), numbers in places.items())


def _read(image: Any) -> str:
    """Read a frame by two detectors at several sizes: each misses some pictures that another one reads."""
    import cv2

    detectors = (cv2.QRCodeDetector(), cv2.QRCodeDetectorAruco())
    for scale in SCALES:
        if scale > 1 and image.size * scale**2 > LOOKED_AT_PIXELS:
            continue
        seen = (
            image if scale == 1 else cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        )
        for detector in detectors:
            text, _, _ = detector.detectAndDecode(seen)
            if frame_of(text):
                return str(text)
    return ""


def _picture(path: Path) -> Iterator[Any]:
    import cv2

    image = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
    if image is not None:
        yield image


def _pictures_of(path: Path) -> Iterator[Any]:
    """The pictures of a film in grey: some of it all along, then what lies between."""
    stride = max(round(_rate_hz(path) * APART_S), 1)
    first = _taken(path, lambda number: number % stride == 0)
    others = _taken(path, lambda number: number % stride != 0)
    return itertools.islice(itertools.chain(first, others if stride > 1 else ()), MOST_PICTURES)


def _rate_hz(path: Path) -> float:
    import cv2

    film = cv2.VideoCapture(str(path))
    try:
        rate_hz = float(film.get(cv2.CAP_PROP_FPS))
        return rate_hz if 0 < rate_hz <= 1000 else 0.0
    finally:
        film.release()


def _taken(path: Path, wanted: Callable[[int], bool]) -> Iterator[Any]:
    import cv2

    film = cv2.VideoCapture(str(path))
    try:
        for number in itertools.count():
            if not film.grab():
                return
            if wanted(number):
                there, image = film.retrieve()
                if there:
                    yield cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    finally:
        film.release()
