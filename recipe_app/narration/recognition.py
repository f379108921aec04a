"""Say what was spoken about a film, offline, with nothing but the words of the recipe's steps.

Run as a program, apart from the server: sounds come from browsers. `FILE` is the sound, stdin an object with `steps`;
prints one object: `text` (nothing where nobody spoke, or of something else), `words` with their seconds, `speech_s`,
`duration_s`, `unknown` (words of the steps that cannot be recognized), `engine`.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from recipe_app.narration.spoken import grammar_of

HZ = 16_000
LONGEST_S = 120
LEAST_SPEECH_S = 0.3
MARGIN_S = 0.3
CPU_S, MEMORY_BYTES = 60, 2 << 30
SILENCES = ("<s>", "</s>", "<sil>", "[NOISE]", "[SPEECH]")
Pcm = npt.NDArray[np.int16]


def decode(path: Path) -> Pcm:
    """Return a sound as 16 kHz mono, at most two minutes; of a torn file what is there. Raises av.FFmpegError."""
    import av

    parts = [np.zeros(0, np.int16)]
    with av.open(str(path)) as file:
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


def recognize(pcm: Pcm, steps: list[str]) -> dict[str, Any]:
    """Return what was said about the steps of a recipe; no text from silence."""
    from pocketsphinx import Decoder

    said: dict[str, Any] = {"engine": "pocketsphinx", "text": "", "words": [], "unknown": []}
    said["duration_s"] = round(len(pcm) / HZ, 3)
    speech_s, spoken = speech(pcm)
    said["speech_s"] = round(speech_s, 3)
    if speech_s < LEAST_SPEECH_S:
        return said
    decoder = Decoder(lm=None, loglevel="FATAL", samprate=HZ)
    grammar = grammar_of(steps, lambda word: decoder.lookup_word(word) is not None)
    said["unknown"] = list(grammar.unknown)
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
    import av

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
    print(json.dumps(recognize(pcm, json.load(sys.stdin)["steps"])))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
