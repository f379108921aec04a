"""One cooked, filmed and synchronized recording for all exports."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cooked_recording import write_cooked
from hand_shape import give_hands

from kitchensync.storage.manifest import edit_manifest


@pytest.fixture(scope="session")
def cooked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording that tests must not change."""
    root = tmp_path_factory.mktemp("cooked")
    write_cooked(root)
    with edit_manifest(root / "take1") as manifest:
        manifest["consent_scopes"] = ["release_raw"]
    return root / "take1"


@pytest.fixture(scope="session")
def with_hands(cooked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording with both hands in front of the head, and the front camera's constants."""
    take = Path(shutil.copytree(cooked, tmp_path_factory.mktemp("with_hands") / "take1"))
    give_hands(take)
    return take
