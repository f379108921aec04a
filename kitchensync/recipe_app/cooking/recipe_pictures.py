"""Pictures of a recipe's result and steps: uploaded at the desk, shown to the cook beside the step.

An upload is decoded in a separate process and re-encoded as a small JPEG, without metadata such as location and
device. The recipes that come with the app have their own drawings.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from sqlalchemy import insert, select

from kitchensync.operations.errors import BadOperation
from kitchensync.recipe_app.exchange.stated_facts import latest
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.recipe_app.store.shelf import OWN_RECIPES, Recipe
from kitchensync.shell.process_apart import Bounds, ChildAnswer, ReaderFailed, ask_once
from kitchensync.task_graphs.errors import NotFound

KIND = "recipe_picture"
"""The operation that sets the picture of a place of a recipe; an empty hash removes it. The latest counts."""
RESULT = "result"
LONGEST_SIDE = 960
"""Pixels; a tablet's screen has 1280, with the step beside the picture."""
QUALITY = 82
MOST_PIXELS = 50_000_000
"""Limit for an uploaded picture, enough for phones."""
PICTURE = Bounds(30.0, 1 << 30, {"OPENCV_IO_MAX_IMAGE_PIXELS": str(MOST_PIXELS)})
DISHES = Path(__file__).resolve().parent.parent / "static" / "dishes"


def put(records: AppRecords, recipe: Recipe, place: str, content: bytes, *, actor: str) -> str:
    """Set the picture of a place, in the form of `small_jpeg`; return its hash. Raises BadOperation."""
    _check(recipe, place)
    sha256 = hashlib.sha256(content).hexdigest()
    table = tables.picture
    with records.changing() as connection:
        if connection.execute(select(table.c.sha256).where(table.c.sha256 == sha256)).first() is None:
            connection.execute(insert(table).values(sha256=sha256, content=content))
        records.note_within(connection, KIND, f"{recipe.name} {place}", {"sha256": sha256}, actor=actor)
    return sha256


def take_away(records: AppRecords, recipe: Recipe, place: str, *, actor: str) -> None:
    """Remove the picture of a place. Raises BadOperation."""
    _check(recipe, place)
    records.note(KIND, f"{recipe.name} {place}", {"sha256": ""}, actor=actor)


def _check(recipe: Recipe, place: str) -> None:
    if place != RESULT and place not in {str(step.node) for step in recipe.graph.steps}:
        raise BadOperation(
            "{place} is no step of {recipe}; a picture belongs to a step or to the result",
            place=place[:20],
            recipe=recipe.title,
        )


def of_all(records: AppRecords) -> dict[str, dict[str, str]]:
    """Return recipe -> place -> address of the uploaded pictures."""
    pictures: dict[str, dict[str, str]] = {}
    for subject, body in latest(records, KIND).items():
        name, _, place = subject.rpartition(" ")
        if body["sha256"]:
            pictures.setdefault(name, {})[place] = address_of(body["sha256"])
    return pictures


def address_of(sha256: str) -> str:
    """Return the address of a picture for tablets and the desk."""
    return f"/api/v1/recipe-pictures/{sha256}"


def of_result(recipe: Recipe, pictures: dict[str, str]) -> str:
    """Return the address of the picture on a recipe's card; empty without one."""
    drawn = DISHES / f"{recipe.name}.svg"
    ours = drawn.is_file() and (OWN_RECIPES / f"{recipe.name}.json").is_file()
    return pictures.get(RESULT) or (f"/static/dishes/{drawn.name}" if ours else "")


def content(records: AppRecords, sha256: str) -> bytes:
    """Return a picture's bytes. Raises NotFound."""
    rows = records.rows(tables.picture, tables.picture.c.sha256 == sha256)
    if not rows:
        raise NotFound("no picture {name!r}; the recipe's page shows those that are here", name=sha256[:12])
    return bytes(rows[0]["content"])


def small_jpeg(path: Path) -> bytes:
    """Make a small JPEG of an uploaded picture. Raises BadOperation if it is not readable."""
    try:
        answer = ask_once(f"{__name__}:tell_small", PICTURE, os.fspath(path.absolute()))
    except ReaderFailed as error:
        raise BadOperation(
            "this picture takes too much memory or crashes its reader; save it as PNG or JPEG anew"
        ) from error
    if answer.value != "small":
        raise BadOperation(
            "this is no picture that can be read, or it has more than {pixels} megapixels; send a JPEG or PNG",
            pixels=MOST_PIXELS // 1_000_000,
        )
    return answer.blobs[0]


def tell_small(path: str) -> ChildAnswer:
    """Decode, rotate upright, shrink and encode a picture, in this process."""
    import cv2

    image: Any = None
    try:
        image = cv2.imread(path, cv2.IMREAD_COLOR)
    except cv2.error as error:
        if error.code == cv2.Error.StsNoMem:
            raise MemoryError from error
        if error.func != "validateInputImageSize":
            raise
    if image is None:
        return ChildAnswer("unreadable")
    scale = LONGEST_SIDE / max(image.shape[:2])
    if scale < 1:
        image = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    written, encoded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    return ChildAnswer("small" if written else "unreadable", [encoded.tobytes()])
