"""What an item of a recording costs beside the bare decoding of the same bytes, picked at random.

    python -P benchmarks/finished_recordings/random_items.py RECORDING [--items 100] [--rounds 3]

In turns, for each random picture: `rec.gopro[i]`, and PyAV from the film's key picture on; `rec.pv[i]` and
`rec.depth[i]`, and the decoder alone from the key picture's packet on, given from memory. Our own side also looks for
damage, leaves out what hangs on a lost packet, reads poses and times, and returns depth in metres.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import av

import kitchensync
from kitchensync.reader.headset_streams import PosedStream
from kitchensync.sensors.hololens.catalogue import headset_stream
from kitchensync.storage.reading.headset_pictures import key_row

Item = Callable[[int], object]


def of_film(path: Path) -> Item:
    """Return what decodes a film's picture and does nothing else."""
    container = av.open(str(path))
    stream = container.streams.video[0]
    stream.thread_type = "AUTO"
    times = sorted(packet.pts for packet in container.demux(stream) if packet.pts is not None)

    def item(number: int) -> object:
        container.seek(times[number], stream=stream)
        picture = next(one for one in container.decode(stream) if one.pts >= times[number])
        return picture.to_ndarray(format="rgb24")

    return item


def of_packets(stream: PosedStream, form: str) -> Item:
    """Return what decodes a headset's picture from packets in memory and does nothing else."""
    stored, cut = stream.stored, headset_stream(stream.name.rpartition("/")[2]).cut
    assert cut is not None
    images = [bytes(cut(stored.payload(int(row))).image) for row in stream.rows]
    keys = [key_row(stored, int(row)) for row in stream.rows]
    codec = {"h264": "h264", "h265": "hevc"}[stored.format["codec"]]

    def item(number: int) -> object:
        decoder = av.CodecContext.create(codec, "r")
        pictures = [
            picture
            for image in images[keys[number] : number + 1]
            for picture in decoder.decode(av.Packet(image))
        ]
        return [*pictures, *decoder.decode(None)][-1].to_ndarray(format=form)

    return item


def taken_ms(item: Item, number: int) -> float:
    """Time one item, in milliseconds."""
    began = time.perf_counter()
    item(number)
    return 1e3 * (time.perf_counter() - began)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recording", type=Path)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with kitchensync.open(options.recording) as rec:
        film = rec.path / "gopro" / rec.films["gopro"][0]
        pairs = {
            "gopro": (rec.gopro, of_film(film)),
            "pv": (rec.pv, of_packets(rec.pv, "rgb24")),
            "depth": (rec.depth, of_packets(rec.depth, "gray")),
        }
        print(
            "| item | ours, ms: median, p95 | bare, ms: median, p95 | ratios of medians, and of p95 |\n"
            "|---|---|---|---|"
        )
        for name, (stream, bare) in pairs.items():
            ratios, tails, shown = [], [], []
            for number in range(options.rounds):
                chosen = random.Random(number).sample(range(len(stream)), options.items)
                both = [(taken_ms(stream.__getitem__, one), taken_ms(bare, one)) for one in chosen]
                ours, theirs = (sorted(side) for side in zip(*both, strict=True))
                tail = len(ours) * 95 // 100
                ratios.append(statistics.median(ours) / statistics.median(theirs))
                tails.append(ours[tail] / theirs[tail])
                shown = [statistics.median(ours), ours[tail], statistics.median(theirs), theirs[tail]]
            print(
                f"| {name} | {shown[0]:.1f}, {shown[1]:.1f} | {shown[2]:.1f}, {shown[3]:.1f}"
                f" | {statistics.median(ratios):.2f}, {statistics.median(tails):.2f} |"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
