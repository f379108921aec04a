"""The commented rig file that `rig init` writes."""

from __future__ import annotations

from importlib import resources

from sensors.hololens.catalogue import DEFAULT_SET, STREAMS


def template(hololens: str, gopro: str) -> str:
    """Return a commented rig file for one headset and one camera."""
    words = resources.files("capture.rig").joinpath("rig.toml.in").read_text(encoding="utf-8")
    return words.format(
        default=", ".join(DEFAULT_SET),
        all=", ".join(STREAMS),
        streams="[" + ", ".join(f'"{name}"' for name in DEFAULT_SET) + "]",
        hololens=hololens,
        gopro=gopro,
    )
