"""Recognize speech with an OpenAI-compatible server: off unless configured, and only with the participant's consent.

It sends the speech as 16 kHz WAV and the texts of the recipe's steps.
"""

from __future__ import annotations

import io
import os
import secrets
import wave
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from kitchensync.shell.untrusted_json import BadJson, parse_json
from kitchensync.storage.options import endpoint

PURPOSE, TIMEOUT = "speech", "KITCHENSYNC_SPEECH_TIMEOUT_S"
WHAT = "sound of a narration, texts of the recipe's steps"
MOST_PROMPT, MOST_TEXT = 800, 600


def speech_server() -> endpoint.Endpoint | None:
    """Return the server that the environment names, if any. Raises OSError, ValueError."""
    return endpoint.endpoint_of(
        PURPOSE, os.environ, timeout_s=float(os.environ.get(TIMEOUT, endpoint.TIMEOUT_S))
    )


def text_from(server: endpoint.Endpoint, spoken: npt.NDArray[np.int16], hz: int, steps: Iterable[str]) -> str:
    """Return the text that a server recognized, one line. Raises NoAnswer."""
    boundary = secrets.token_hex(16)
    fields = {
        "model": server.model,
        "response_format": "json",
        "temperature": "0",
        "prompt": ". ".join(steps)[:MOST_PROMPT],
    }
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(hz)
        file.writeframes(spoken.astype("<i2").tobytes())
    sound = out.getvalue()
    parts = [(f'name="{name}"', text.encode()) for name, text in fields.items()]
    parts.append(('name="file"; filename="narration.wav"\r\nContent-Type: audio/wav', sound))
    encoded = [
        f"--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + body
        for head, body in parts
    ]
    content = b"\r\n".join([*encoded, f"--{boundary}--\r\n".encode()])
    kind = f"multipart/form-data; boundary={boundary}"
    answer, _ = endpoint.post(server, "/audio/transcriptions", content, WHAT, os.environ, kind)
    try:
        text: Any = parse_json(answer, most_bytes=endpoint.MAX_ANSWER_BYTES)["text"]
    except (BadJson, KeyError, TypeError) as error:
        raise endpoint.NoAnswer("unreadable", f"no text in its answer ({type(error).__name__})") from error
    if not isinstance(text, str):
        raise endpoint.NoAnswer("unreadable", "its text is none")
    line = " ".join(text.split())
    if len(line) > MOST_TEXT or not line.isprintable():
        raise endpoint.NoAnswer(
            "unreadable", f"its text is not a single line of at most {MOST_TEXT} characters"
        )
    return line
