"""Pairs with a known clock map, from the bench's generator: it shares nothing with the code under test."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType

import pytest
import sync_recordings
import sync_trials
from small_recordings import write_recordings

from kitchensync.virtual_kitchen.kitchen import Kitchen


@pytest.fixture(scope="session")
def trials() -> ModuleType:
    """The trial bench as a module."""
    return sync_trials


@pytest.fixture(scope="session")
def recordings() -> ModuleType:
    """The writer of whole recordings as a module."""
    return sync_recordings


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Kitchen]:
    """A folder with one recording that has everything, and a camera file of another kitchen."""
    root = tmp_path_factory.mktemp("made")
    return root, write_recordings(root)


@pytest.fixture
def take(made: tuple[Path, Kitchen], tmp_path: Path) -> Path:
    """A copy of the recording that a test may spoil."""
    shutil.copytree(made[0] / "take1", tmp_path / "take1")
    return tmp_path / "take1"
