"""The acoustic slate of a recording as a file that a tablet plays."""

from __future__ import annotations

import io
import wave
from typing import Any

import numpy as np

from kitchensync.dataset.operations.event_lines import folder_of
from kitchensync.storage.timeline.acoustic_slate import slate_wave
from kitchensync.task_graphs.errors import NotFound

RATE_HZ = 48_000


def slate_sound(ops: list[dict[str, Any]]) -> bytes:
    """Return the slate of the folder that a recording has by its operations, as WAV of 16 bits. Raises NotFound."""
    folder = folder_of(ops)
    if folder is None:
        raise NotFound("nothing is being recorded here")
    samples = np.rint(slate_wave(folder, RATE_HZ) * 32767).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(samples.itemsize)
        sound.setframerate(RATE_HZ)
        sound.writeframes(samples.tobytes())
    return file.getvalue()
