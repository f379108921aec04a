"""Pictures of recipes, of the result and of steps: put in at the desk, shown to the cook beside the step.

Whatever was sent is read in a process apart and written anew as a small JPEG: nothing but what is seen stays of it,
neither place nor maker. The recipes that come with the app have drawings of their own.
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
"""The operation that puts a picture at a place of a recipe; an empty hash takes it away. The latest counts."""
RESULT = "result"
LONGEST_SIDE = 960
"""Pixels; a tablet's screen has 1280, and the step stands beside it."""
QUALITY = 82
MOST_PIXELS = 50_000_000
"""Of a picture that is sent, as telephones take them."""
PICTURE = Bounds(30.0, 1 << 30, {"OPENCV_IO_MAX_IMAGE_PIXELS": str(MOST_PIXELS)})
DISHES = Path(__file__).resolve().parent.parent / "static" / "dishes"


def put(records: AppRecords, recipe: Recipe, place: str, content: bytes, *, actor: str) -> str:
    """Put a picture, as `small_jpeg` gives it, at a place; return its hash. Raises BadOperation."""
    _check(recipe, place)
    sha256 = hashlib.sha256(content).hexdigest()
    table = tables.picture
    with records.changing() as connection:
        if connection.execute(select(table.c.sha256).where(table.c.sha256 == sha256)).first() is None:
            connection.execute(insert(table).values(sha256=sha256, content=content))
        records.note_within(connection, KIND, f"{recipe.name} {place}", {"sha256": sha256}, actor=actor)
    return sha256


def take_away(records: AppRecords, recipe: Recipe, place: str, *, actor: str) -> None:
    """Show no picture at this place any more. Raises BadOperation."""
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
    """Return recipe -> place -> address, of what was put in."""
    found: dict[str, dict[str, str]] = {}
    for subject, said in latest(records, KIND).items():
        name, _, place = subject.rpartition(" ")
        if said["sha256"]:
            found.setdefault(name, {})[place] = address_of(said["sha256"])
    return found


def address_of(sha256: str) -> str:
    """Return where tablets and the desk find a picture."""
    return f"/api/v1/recipe-pictures/{sha256}"


def of_result(recipe: Recipe, put_in: dict[str, str]) -> str:
    """Return the address of the picture on a recipe's card; nothing where it has none."""
    drawn = DISHES / f"{recipe.name}.svg"
    ours = drawn.is_file() and (OWN_RECIPES / f"{recipe.name}.json").is_file()
    return put_in.get(RESULT) or (f"/static/dishes/{drawn.name}" if ours else "")


def content(records: AppRecords, sha256: str) -> bytes:
    """Return a picture's bytes. Raises NotFound."""
    rows = records.rows(tables.picture, tables.picture.c.sha256 == sha256)
    if not rows:
        raise NotFound("no picture {name!r}; the recipe's page shows those that are here", name=sha256[:12])
    return bytes(rows[0]["content"])


def small_jpeg(path: Path) -> bytes:
    """Make a small JPEG of a stranger's picture. Raises BadOperation for what is none."""
    try:
        told = ask_once(f"{__name__}:tell_small", PICTURE, os.fspath(path.absolute()))
    except ReaderFailed as error:
        raise BadOperation(
            "this picture takes too much memory or crashes its reader; save it as PNG or JPEG anew"
        ) from error
    if told.value != "small":
        raise BadOperation(
            "this is no picture that can be read, or it has more than {pixels} megapixels; send a JPEG or PNG",
            pixels=MOST_PIXELS // 1_000_000,
        )
    return told.blobs[0]


def tell_small(path: str) -> ChildAnswer:
    """Read, turn upright, shrink and write a picture, in this process."""
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
