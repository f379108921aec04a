"""A lost `recording.json` made anew: from a copy of the recording, else from what its other files say."""

from kitchensync.storage.rebuild.rebuilt_manifest import Rebuilt, rebuild

__all__ = ["Rebuilt", "rebuild"]
