"""Reserve devices for one recording at a time, by files in the runtime folders of the running recordings."""

from __future__ import annotations

import json
from pathlib import Path

from kitchensync.capture.errors import DeviceTaken
from kitchensync.capture.plan import RecordingRequest, is_running, runtime_root

DEVICES = "devices.json"
"""File in the runtime folder: the recording, and the addresses of its devices by name."""


def addresses_of(order: RecordingRequest) -> dict[str, str]:
    """Return the addresses of headsets and cameras by name; those of plug-in sensors are not known."""
    headsets = {headset.name: headset.host for headset in order.headsets}
    return headsets | {name: url.rstrip("/") for name, url in order.cameras.items()}


def check_free(addresses: dict[str, str], own: Path) -> None:
    """Check that no other running recording has a device; `own` is our runtime folder. Raises DeviceTaken."""
    for path in runtime_root().glob(f"*/{DEVICES}"):
        if path.parent == own:
            continue
        try:
            content = json.loads(path.read_text())
        except (OSError, ValueError):
            continue  # it has just ended, or just begins and will see our file
        recording, taken = str(content["recording"]), set(content["addresses"].values())
        for name, address in addresses.items():
            if address in taken and is_running(path.parent):
                raise DeviceTaken(name, recording)


def take(addresses: dict[str, str], recording: str, runtime: Path) -> None:
    """Reserve devices for a recording. Raises DeviceTaken."""
    (runtime / DEVICES).write_text(json.dumps({"recording": recording, "addresses": addresses}))
    # Only after writing: of two recordings that start together at least one sees the other.
    check_free(addresses, runtime)
