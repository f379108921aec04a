"""Write requirements/core.txt, dev.txt and all.txt: every version that is installed, with the hashes of its files.

python tools/lock.py [--upgrade]

Each file holds what the ones before it do not, so `make` installs them one after the other. Versions stay as they are
unless setup.cfg forbids them or --upgrade is given. Needs `uv` on the PATH (`pipx install uv`).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
FOLDER = REPOSITORY / "requirements"
STAGES = {
    "core": ("app",),
    "dev": ("app", "dev", "gopro"),
    "all": ("app", "dev", "gopro", "calib", "cloud", "view"),
}
"""Extras of setup.cfg by file, `app` with all it requires; what builds the package itself is in the first."""
HEAD = "# Made by `make lock` from setup.cfg; what the files before it hold is left out.\n"
COMMAND = (
    "uv pip compile --quiet --generate-hashes --no-annotate --no-header --universal --python-version 3.11"
)


def main(more: list[str]) -> None:
    """Resolve everything, starting from the versions that are locked; write what each stage adds."""
    built_by = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]
    with tempfile.TemporaryDirectory() as folder:
        builder, versions = Path(folder) / "builder.in", Path(folder) / "versions.txt"
        builder.write_text("\n".join(built_by["requires"]), encoding="utf-8")
        versions.write_text("".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.txt")))
        resolve([*more, *chosen("all"), str(builder)], versions)
        known: set[str] = set()
        for stage in STAGES:
            out = shutil.copy(versions, Path(folder) / f"{stage}.txt")
            resolve([*chosen(stage), str(builder)], out)
            blocks = re.split(r"^(?=\S)", out.read_text(encoding="utf-8"), flags=re.MULTILINE)
            added = "".join(block for block in blocks if block not in known)
            (FOLDER / f"{stage}.txt").write_text(HEAD + added, encoding="utf-8")
            known.update(blocks)


def chosen(stage: str) -> list[str]:
    """Return the options that choose a stage's extras."""
    return [f"--extra={extra}" for extra in STAGES[stage]]


def resolve(asked: list[str], out: Path) -> None:
    """Write what is needed to a file, which says before which versions to prefer."""
    subprocess.run([*COMMAND.split(), "setup.cfg", *asked, "-o", str(out)], cwd=REPOSITORY, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
