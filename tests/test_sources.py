"""Every test that is skipped for want of real data says in one line which public repository has them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sources import SOURCES, source_of

TESTS = Path(__file__).parent
ASKED = re.compile(r'shared_data\(f?"([^"{]*)')


def asked_for() -> set[str]:
    return {
        name
        for file in TESTS.rglob("test_*.py")
        if file != Path(__file__)
        for name in ASKED.findall(file.read_text())
        if name != "gopro/"  # the name follows: each of its files is in the list
    }


@pytest.mark.parametrize("name", sorted(asked_for()))
def test_what_a_test_asks_for_has_a_source(name):
    told = source_of(name)
    assert "github.com/" in told
    assert re.search(r"at [0-9a-f]{7}\b", told)
    assert "\n" not in told


def test_every_sample_of_a_camera_has_a_source(shared_data):
    files = [path for path in shared_data("gopro/max-heromode.mp4").parent.iterdir() if path.suffix != ".md"]
    assert {f"gopro/{path.name}" for path in files if "LICENSE" not in path.name} <= set(SOURCES)
