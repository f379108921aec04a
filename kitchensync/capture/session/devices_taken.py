"""One recording at a time has a device: which ones the running recordings have, by their private folders."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from kitchensync.capture.errors import DeviceTaken
from kitchensync.capture.plan import RecordingRequest, is_running, runtime_root

DEVICES = "devices.json"
"""In the runtime folder: the recording, and the addresses of its devices by name."""


def addresses_of(order: RecordingRequest) -> dict[str, str]:
    """Return where the devices of an order are, by name; of plug-in sensors nobody knows that."""
    return {one.name: one.host for one in order.headsets} | {
        name: url.rstrip("/") for name, url in order.cameras.items()
    }


def check_free(addresses: dict[str, str], own: Path) -> None:
    """Refuse devices that another running recording has; `own` is our runtime folder. Raises DeviceTaken."""
    for runtime, recording, taken in _others(own):
        for name, address in addresses.items():
            if address in taken and is_running(runtime):
                raise DeviceTaken(name, recording)


def take(addresses: dict[str, str], recording: str, runtime: Path) -> None:
    """Say that these devices are ours, and see that nobody else said so. Raises DeviceTaken."""
    (runtime / DEVICES).write_text(json.dumps({"recording": recording, "addresses": addresses}))
    check_free(addresses, runtime)  # after our own word: of two that begin at once one sees the other


def _others(own: Path) -> Iterator[tuple[Path, str, set[str]]]:
    for path in runtime_root().glob(f"*/{DEVICES}"):
        if path.parent == own:
            continue
        try:
            said = json.loads(path.read_text())
        except (OSError, ValueError):
            continue  # it has just ended, or just begins: then it will see ours
        yield path.parent, str(said["recording"]), set(said["addresses"].values())
