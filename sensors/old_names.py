"""The names that plug-ins written before 0.2 import: `sensors.plugin` is `kitchensync.sensors.plugin` there."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

FOLDERS = ("calibration", "capture", "dataset", "sensors", "storage", "sync", "task_graphs")


class OldNames(MetaPathFinder, Loader):
    """Finds a module of KitchenSync by its name without `kitchensync`, where nobody else has that name.

    It stands before the others: below a folder of ours they would load each module a second time.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find one of ours."""
        top, _, below = fullname.partition(".")
        if top not in FOLDERS:
            return None
        if below:
            is_ours = sys.modules[top].__name__ == f"kitchensync.{top}"
        else:
            is_ours = PathFinder.find_spec(fullname) is None
        return ModuleSpec(fullname, self) if is_ours else None

    def exec_module(self, module: ModuleType) -> None:
        """Put the module itself, not a copy, under the name that was asked for. Raises ImportError."""
        new = f"kitchensync.{module.__name__}"
        if "." not in module.__name__:
            words = f"a plug-in imports {module.__name__!r}, which is {new!r} now"
            warnings.warn(words, FutureWarning, stacklevel=2)
        sys.modules[module.__name__] = importlib.import_module(new)


def accept_old_names() -> None:
    """From now on modules are found by both names in this process."""
    if not any(isinstance(finder, OldNames) for finder in sys.meta_path):
        sys.meta_path.insert(0, OldNames())
