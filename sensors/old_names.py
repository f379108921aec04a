"""The names that plug-ins written before 0.2 import: `sensors.plugin` is `kitchensync.sensors.plugin` there."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

FOLDERS = ("calibration", "capture", "sensors", "storage", "sync", "task_graphs")


class OldNames(MetaPathFinder, Loader):
    """Finds a module of KitchenSync by its name without `kitchensync`, where nothing else has that name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find one of ours."""
        return ModuleSpec(fullname, self) if fullname.partition(".")[0] in FOLDERS else None

    def exec_module(self, module: ModuleType) -> None:
        """Put the module itself, not a copy, under the name that was asked for. Raises ImportError."""
        new = f"kitchensync.{module.__name__}"
        warnings.warn(f"import {new}, not {module.__name__}", DeprecationWarning, stacklevel=2)
        sys.modules[module.__name__] = importlib.import_module(new)


def accept_old_names() -> None:
    """From now on modules are found by both names in this process."""
    if not any(isinstance(finder, OldNames) for finder in sys.meta_path):
        sys.meta_path.append(OldNames())
