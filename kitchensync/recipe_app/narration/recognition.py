"""Recognize what was spoken about a film, offline, with nothing but the words of the recipe's steps, or by a server.

Run as a program, apart from the app: sounds come from browsers. `FILE` is the sound, stdin an object with `steps`
and `asks_server`; prints one object: `text` (nothing where nobody spoke, or of something else), `words` with their
seconds, `speech_s`, `duration_s`, `unknown` (words of the steps that cannot be recognized), `engine`, `why` the
server did not help. The model is the one of the package, or in the folder that `KITCHENSYNC_SPEECH_FOLDER` names:
an acoustic model of the CMU Sphinx form and its dictionary (`*.dict`). Where nobody spoke no server is asked.
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

HZ = 16_000
LONGEST_S = 120
LEAST_SPEECH_S = 0.3
MARGIN_S = 0.3
CPU_S, MEMORY_BYTES = 60, 2 << 30
FOLDER = "KITCHENSYNC_SPEECH_FOLDER"
SILENCES = ("<s>", "</s>", "<sil>", "[NOISE]", "[SPEECH]")
Pcm = npt.NDArray[np.int16]


def decode(path: Path) -> Pcm:
    """Return a sound as 16 kHz mono, at most two minutes; of a torn file what is there. Raises av.FFmpegError."""
    parts = [np.zeros(0, np.int16)]
    with open_container(path) as file:
        resampler = av.AudioResampler("s16", "mono", HZ)
        try:
            for frame in file.decode(audio=0):
                parts += [one.to_ndarray()[0] for one in resampler.resample(frame)]
                if sum(map(len, parts)) > LONGEST_S * HZ:
                    break
        except av.error.InvalidDataError:
            pass  # the browser was closed in the middle of a packet: what came before it counts
    return np.concatenate(parts)[: LONGEST_S * HZ]


def speech(pcm: Pcm) -> tuple[float, Pcm]:
    """Return how long somebody spoke, seconds, and the sound from the first to the last of it."""
    from pocketsphinx import Vad

    gate = Vad(mode=2, sample_rate=HZ)
    size = gate.frame_bytes // 2
    frames = [pcm[at : at + size] for at in range(0, len(pcm) - size + 1, size)]
    spoken = [number for number, one in enumerate(frames) if gate.is_speech(one.tobytes())]
    if not spoken:
        return 0.0, pcm[:0]
    margin = round(MARGIN_S * HZ)
    first, last = max(0, spoken[0] * size - margin), (spoken[-1] + 1) * size + margin
    return len(spoken) * size / HZ, pcm[first:last]


class NoModel(ValueError):
    """A folder that holds no model that can be used."""


def model_in(folder: str) -> dict[str, str]:
    """Return what tells the recognizer of the model in a folder; nothing without one. Raises NoModel."""
    if not folder:
        return {}
    places, words = sorted(Path(folder).glob("**/mdef")), sorted(Path(folder).glob("**/*.dict"))
    if (len(places), len(words)) != (1, 1):
        raise NoModel(
            f"{folder}: holds {len(places)} acoustic models and {len(words)} dictionaries, not one of each"
        )
    return {"hmm": str(places[0].parent), "dict": str(words[0])}


def recognize(pcm: Pcm, steps: list[str], *, folder: str = "", asks_server: bool = False) -> dict[str, Any]:
    """Return what was said about the steps of a recipe; no text from silence. Raises NoModel."""
    said: dict[str, Any] = {"engine": "pocketsphinx", "text": "", "words": [], "unknown": [], "why": ""}
    said["duration_s"] = round(len(pcm) / HZ, 3)
    speech_s, spoken = speech(pcm)
    said["speech_s"] = round(speech_s, 3)
    if speech_s < LEAST_SPEECH_S:
        return said
    if asks_server:
        said |= by_server(spoken, steps)
    return said if said["engine"] == "server" else said | by_grammar(spoken, steps, folder)


def by_server(spoken: Pcm, steps: list[str]) -> dict[str, Any]:
    """Return what a server understood, `engine` being it; else why it did not help."""
    try:
        server = speech_server()
        return {} if server is None else {"engine": "server", "text": text_from(server, spoken, HZ, steps)}
    except NoAnswer as error:
        return {"why": f"the server did not help ({error.kind}): {error}; recognized here"}
    except (OSError, ValueError) as error:
        return {"why": f"no server was asked: {error}; recognized here"}


def by_grammar(spoken: Pcm, steps: list[str], folder: str) -> dict[str, Any]:
    """Return what was said in the words of the steps, recognized here. Raises NoModel."""
    from pocketsphinx import Decoder

    try:
        decoder = Decoder(lm=None, loglevel="FATAL", samprate=HZ, **model_in(folder))
    except RuntimeError as error:
        raise NoModel(f"{folder}: the recognizer cannot use this model") from error
    grammar = grammar_of(steps, lambda word: decoder.lookup_word(word) is not None)
    said: dict[str, Any] = {"unknown": list(grammar.unknown)}
    if not grammar.text:
        return said
    decoder.add_jsgf_string("steps", grammar.text)
    decoder.activate_search("steps")
    decoder.start_utt()
    decoder.process_raw(spoken.tobytes(), full_utt=True)
    decoder.end_utt()
    found = decoder.hyp()
    if found is None or not found.hypstr:
        return said
    said["text"] = found.hypstr
    said["words"] = [
        {
            "word": one.word.partition("(")[0],
            "start_s": one.start_frame / 100,
            "end_s": (one.end_frame + 1) / 100,
        }
        for one in decoder.seg()
        if one.word not in SILENCES
    ]
    return said


def main(path: str) -> int:
    """Recognize a file; return the exit code."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))

    try:
        import pocketsphinx  # noqa: F401
    except ImportError:
        print("no recognizer here; pip install 'kitchensync[speech]', or type what was said", file=sys.stderr)
        return 1
    try:
        pcm = decode(Path(path))
    except (OSError, av.FFmpegError, IndexError) as error:
        print(f"not a sound: {error}", file=sys.stderr)
        return 1
    asked = json.load(sys.stdin)
    try:
        said = recognize(
            pcm, asked["steps"], folder=os.environ.get(FOLDER, ""), asks_server=asked["asks_server"]
        )
    except NoModel as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(said))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
