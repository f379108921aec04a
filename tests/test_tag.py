"""The tag of a release is refused unless tree, tags and changelog fit."""

from __future__ import annotations

import pytest
from tag import obstacle

DATED = "# Changelog\n\n## 0.1.0 (2026-12-01)\n"


@pytest.mark.parametrize(
    ("version", "changelog", "changed", "tags", "why"),
    [
        ("0.1.0", DATED, "", ["v0.0.9"], ""),
        ("0.1", DATED, "", [], "is not a version"),
        ("0.1.0", DATED, " M README.md", [], "not committed"),
        ("0.1.0", DATED, "", ["v0.1.0"], "exists"),
        ("0.1.0", DATED.replace("2026-12-01", "unreleased"), "", [], "must begin"),
        ("0.2.0", DATED, "", [], "must begin"),
    ],
)
def test_what_keeps_a_version_from_being_tagged(version, changelog, changed, tags, why):
    assert why in obstacle(version, changelog, changed, tags)
    assert bool(why) == bool(obstacle(version, changelog, changed, tags))
