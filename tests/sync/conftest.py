"""Pairs with a known clock map, from the bench's generator: it shares nothing with the code under test."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest
from small_recordings import write_recordings

from kitchensync.virtual_kitchen.kitchen import Kitchen

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="session")
def trials() -> ModuleType:
    """The trial bench as a module."""
    return _load("sync_trials")


@pytest.fixture(scope="session")
def recordings() -> ModuleType:
    """The writer of whole recordings as a module."""
    return _load("sync_recordings")


def _load(stem: str) -> ModuleType:
    name = f"kitchensync_{stem}"
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{stem}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


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
