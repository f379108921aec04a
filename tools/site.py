"""Build the site of the documents and notebooks; a link that leads nowhere stops it.

python tools/site.py FOLDER
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from generate import BUILT, DOCS
from nbconvert import MarkdownExporter
from nbconvert.writers import FilesWriter

NOTEBOOKS = DOCS.parent / "examples" / "notebooks"
IN_THE_REPOSITORY = re.compile(r"\.\./examples/notebooks/([\w-]+)\.ipynb")
"""A link to a notebook, which is a page of the site."""


def main(folder: Path) -> int:
    """Gather pages in FOLDER/pages and build FOLDER/html of them; return the exit code."""
    pages = folder / "pages"
    for made in (pages, folder / "html"):  # and nothing else that lies in this folder
        if made.exists():
            shutil.rmtree(made)
    shutil.copytree(DOCS, pages, ignore=shutil.ignore_patterns("*.toml"))
    for name, make in BUILT.items():
        (pages / name).write_text(make(), encoding="utf-8")
    shutil.copy(DOCS / "zensical.toml", folder)
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        own = {"unique_key": notebook.stem, "output_files_dir": f"{notebook.stem}_files"}
        body, resources = MarkdownExporter().from_filename(str(notebook), resources=own)
        FilesWriter(build_directory=str(pages / "notebooks")).write(
            body, resources, notebook_name=notebook.stem
        )
    for page in pages.rglob("*.md"):
        page.write_text(
            IN_THE_REPOSITORY.sub(r"notebooks/\1.md", page.read_text(encoding="utf-8")), encoding="utf-8"
        )
    zensical = Path(sys.executable).parent / "zensical"
    return subprocess.run(
        [zensical, "build", "--strict", "-f", folder / "zensical.toml"], check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
