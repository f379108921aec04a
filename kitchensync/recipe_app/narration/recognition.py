"""Recognize a narration offline with a grammar of the recipe's steps, or by a server.

Run as a separate program, since sounds come from browsers. `FILE` is the sound, stdin an object with `steps` and
`asks_server`; prints one object: `text` (empty if nothing was recognized), `words` with their seconds, `speech_s`,
`duration_s`, `unknown` (words of the steps that cannot be recognized), `engine`, `why` the server failed. The model
is that of the package, or in the folder that `KITCHENSYNC_SPEECH_FOLDER` names: a CMU Sphinx acoustic model and its
dictionary (`*.dict`). Silence is not sent to a server.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt

from kitchensync.dataset.narration.spoken import grammar_of
from kitchensync.recipe_app.narration.speech_server import speech_server, text_from
from kitchensync.sensors.gopro.files.media import open_container
from kitchensync.storage.options.endpoint import NoAnswer

HZ = 16_000  # what the acoustic model and the server get
LONGEST_S = 120
LEAST_SPEECH_S = 0.3
MARGIN_S = 0.3
CPU_S, MEMORY_BYTES = 60, 2 << 30  # sounds come from browsers and may be crafted
FOLDER = "KITCHENSYNC_SPEECH_FOLDER"
SILENCES = ("<s>", "</s>", "<sil>", "[NOISE]", "[SPEECH]")
Pcm = npt.NDArray[np.int16]


def decode(path: Path) -> Pcm:
    """Return a sound as 16 kHz mono, at most two minutes, of a truncated file its start. Raises av.FFmpegError."""
    parts = [np.zeros(0, np.int16)]
    with open_container(path) as file:
        resampler = av.AudioResampler("s16", "mono", HZ)
        try:
            for frame in file.decode(audio=0):
                parts += [part.to_ndarray()[0] for part in resampler.resample(frame)]
                if sum(map(len, parts)) > LONGEST_S * HZ:
                    break
        except av.error.InvalidDataError:
            pass  # the browser was closed in the middle of a packet: keep what came before
    return np.concatenate(parts)[: LONGEST_S * HZ]


def speech(pcm: Pcm) -> tuple[float, Pcm]:
    """Return the duration of speech in seconds, and the sound from its first to its last frame of speech."""
    from pocketsphinx import Vad

    gate = Vad(mode=2, sample_rate=HZ)
    size = gate.frame_bytes // 2
    frames = [pcm[at : at + size] for at in range(0, len(pcm) - size + 1, size)]
    spoken = [number for number, frame in enumerate(frames) if gate.is_speech(frame.tobytes())]
    if not spoken:
        return 0.0, pcm[:0]
    margin = round(MARGIN_S * HZ)
    first, last = max(0, spoken[0] * size - margin), (spoken[-1] + 1) * size + margin
    return len(spoken) * size / HZ, pcm[first:last]


class NoModel(ValueError):
    """A folder without a usable speech model."""


def model_in(folder: str) -> dict[str, str]:
    """Return the recognizer's options for the model in a folder; empty without a folder. Raises NoModel."""
    if not folder:
        return {}
    places, words = sorted(Path(folder).glob("**/mdef")), sorted(Path(folder).glob("**/*.dict"))
    if (len(places), len(words)) != (1, 1):
        raise NoModel(
            f"{folder}: holds {len(places)} acoustic models and {len(words)} dictionaries, not one of each"
        )
    return {"hmm": str(places[0].parent), "dict": str(words[0])}


def recognize(pcm: Pcm, steps: list[str], *, folder: str = "", asks_server: bool = False) -> dict[str, Any]:
    """Recognize a narration about the steps of a recipe; no text from silence. Raises NoModel."""
    result: dict[str, Any] = {"engine": "pocketsphinx", "text": "", "words": [], "unknown": [], "why": ""}
    result["duration_s"] = round(len(pcm) / HZ, 3)
    speech_s, spoken = speech(pcm)
    result["speech_s"] = round(speech_s, 3)
    if speech_s < LEAST_SPEECH_S:
        return result
    if asks_server:
        result |= by_server(spoken, steps)
    return result if result["engine"] == "server" else result | by_grammar(spoken, steps, folder)


def by_server(spoken: Pcm, steps: list[str]) -> dict[str, Any]:
    """Return the text of a server with `engine` set to `server`, else `why` it failed."""
    try:
        server = speech_server()
        return {} if server is None else {"engine": "server", "text": text_from(server, spoken, HZ, steps)}
    except NoAnswer as error:
        return {"why": f"the server failed ({error.kind}): {error}; recognized on this computer"}
    except (OSError, ValueError) as error:
        return {"why": f"no server used: {error}; recognized on this computer"}


def by_grammar(spoken: Pcm, steps: list[str], folder: str) -> dict[str, Any]:
    """Recognize the words of the steps with the offline model. Raises NoModel."""
    from pocketsphinx import Decoder

    try:
        decoder = Decoder(lm=None, loglevel="FATAL", samprate=HZ, **model_in(folder))
    except RuntimeError as error:
        raise NoModel(f"{folder}: the recognizer cannot use this model") from error
    grammar = grammar_of(steps, lambda word: decoder.lookup_word(word) is not None)
    result: dict[str, Any] = {"unknown": list(grammar.unknown)}
    if not grammar.text:
        return result
    decoder.add_jsgf_string("steps", grammar.text)
    decoder.activate_search("steps")
    decoder.start_utt()
    decoder.process_raw(spoken.tobytes(), full_utt=True)
    decoder.end_utt()
    hypothesis = decoder.hyp()
    if hypothesis is None or not hypothesis.hypstr:
        return result
    result["text"] = hypothesis.hypstr
    result["words"] = [
        {
            "word": segment.word.partition("(")[0],
            "start_s": segment.start_frame / 100,
            "end_s": (segment.end_frame + 1) / 100,
        }
        for segment in decoder.seg()
        if segment.word not in SILENCES
    ]
    return result


def main(path: str) -> int:
    """Recognize a file; return the exit code."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))

    try:
        import pocketsphinx  # noqa: F401
    except ImportError:
        print(
            "no recognizer is installed; pip install 'kitchensync[speech]', or type the text", file=sys.stderr
        )
        return 1
    try:
        pcm = decode(Path(path))
    except (OSError, av.FFmpegError, IndexError) as error:
        print(f"not a sound: {error}", file=sys.stderr)
        return 1
    request = json.load(sys.stdin)
    try:
        result = recognize(
            pcm, request["steps"], folder=os.environ.get(FOLDER, ""), asks_server=request["asks_server"]
        )
    except NoModel as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
