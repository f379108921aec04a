"""Prepare the tag of a release: `python tools/tag.py 0.1.0`; the version of the package comes from the tag.

Refused unless the tree is clean, the tag is new, and CHANGELOG.md begins with the version and its date. Nothing is
pushed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def git(*words: str) -> str:
    """Return what git prints. Raises CalledProcessError."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def obstacle(version: str, changelog: str, changed: str, tags: list[str]) -> str:
    """Return why a version cannot be tagged, "" if it can."""
    newest = re.search(r"^## (\S+) \((.*)\)$", changelog, re.MULTILINE)
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        return f"{version!r} is not a version such as 0.1.0"
    if changed:
        return "the tree has changes that are not committed"
    if f"v{version}" in tags:
        return f"the tag v{version} exists"
    if newest is None or newest[1] != version or not re.fullmatch(r"\d{4}-\d\d-\d\d", newest[2]):
        return f"CHANGELOG.md must begin with `## {version} (YYYY-MM-DD)`"
    return ""


def main(version: str) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if why := obstacle(version, changelog, git("status", "--porcelain"), git("tag").split()):
        sys.exit(f"no tag: {why}")
    git("tag", "-a", f"v{version}", "-m", f"KitchenSync {version}")
    print(f"tagged v{version}; publish it with `git push origin v{version}`")


if __name__ == "__main__":
    main(*sys.argv[1:])
