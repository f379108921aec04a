"""The files that a tablet caches, and their version: a hash over all of them, so that no change is missed."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from kitchensync.recipe_app.web.i18n import LANGUAGES

FOLDER = Path(__file__).resolve().parents[2]
STATIC = FOLDER / "static"


@cache
def shell_files() -> list[str]:
    """Return the addresses of all files that the tablet's pages load, without those of the desk."""
    paths = sorted(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.is_file())
    of_tablet = [path for path in paths if not path.startswith("desk/") and not path.endswith(".txt")]
    return [*(f"/static/{path}" for path in of_tablet), *(f"/locales/{name}.json" for name in LANGUAGES)]


@cache
def shell_version() -> str:
    """Return a short hash over the content of the shell."""
    digest = hashlib.sha256()
    for folder in ("static", "locales", "templates"):
        for path in sorted((FOLDER / folder).rglob("*")):
            if path.is_file():
                digest.update(path.relative_to(FOLDER).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]
