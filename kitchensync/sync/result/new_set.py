"""The files of one synchronization: made beside those of the last one, put in their place as one set.

Whatever fails before that, a full disk or a killed process, leaves the last set as it was.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kitchensync.shell.files_on_disk import sync_path
from kitchensync.storage.disk.durable import LOCAL
from kitchensync.storage.disk.folder_lock import locked_folder
from kitchensync.storage.manifest import note_change
from kitchensync.storage.names import PART_SUFFIX
from kitchensync.sync.result.state import OWN, STATE

TABLES = ("index.parquet", "poses.parquet", "events.json")
ALIGNMENT = "alignment"


@contextmanager
def new_set(recording: Path) -> Iterator[Path]:
    """Lend an empty folder; what lies there when the block ends replaces the last set. Raises OSError.

    Waits while another process synchronizes the recording.
    """
    own = recording / OWN
    folder = own / f"{uuid.uuid4().hex[:8]}{PART_SUFFIX}"
    own.mkdir(exist_ok=True)
    with locked_folder(own):
        try:
            own.mkdir(exist_ok=True)  # whoever had the lock may have removed it, empty
            for path in own.glob(f"*{PART_SUFFIX}"):  # what a killed run left half made
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            folder.mkdir()
            yield folder
            _put_in_place(folder, own)
            note_change(recording)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):
                own.rmdir()  # only where it is empty: nothing was ever written


def _put_in_place(folder: Path, own: Path) -> None:
    """Rename the new files over the last ones. All that needs room comes first, and the state is the last of all.

    Only what synchronization owns is removed; reports and the check of mounts are others'.
    """
    made = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    for name in made:
        sync_path(folder / name)  # some disks say only then that they are full
        (own / name).parent.mkdir(exist_ok=True)
    state = Path(STATE.name)
    (own / state).unlink(missing_ok=True)  # from here until the new one is there the set may be mixed
    last = {path.relative_to(own) for path in (own / ALIGNMENT).rglob("*") if path.is_file()}
    last |= {Path(name) for name in TABLES if (own / name).is_file()}
    for name in sorted(made - {state}):
        LOCAL.rename(folder / name, own / name)
    for name in last - made:
        LOCAL.remove(own / name)
    for place in {(own / name).parent for name in made}:
        LOCAL.sync_folder(place)
    if state in made:
        LOCAL.rename(folder / state, own / state)
        LOCAL.sync_folder(own)
