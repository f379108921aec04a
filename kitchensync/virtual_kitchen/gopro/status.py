"""The status values that the virtual GoPro shows, by id."""

from __future__ import annotations

from kitchensync.virtual_kitchen.gopro.clips import Phase

CARD_BYTES = 64 << 30
BYTES_PER_S = 7_500_000  # for the remaining time on the card: 60 Mbit/s


def status_values(
    model_name: str,
    phase: Phase,
    *,
    is_settling: bool,
    encoded_s: int,
    marks: int,
    battery_percent: int,
    files: list[int],
    is_hot: bool,
    is_full: bool,
    is_slow: bool,
    control: tuple[bool, int, bool],
) -> dict[str, int | str]:
    """Return all values, as text keys; `files` are the sizes on the card, `control` is turbo, owner and USB."""
    free = 0 if is_full else max(0, CARD_BYTES - sum(files) - encoded_s * BYTES_PER_S)
    is_busy = is_settling or phase in (Phase.STARTING, Phase.FINALISING)
    is_turbo, owner, is_usb_controlled = control
    values = {
        1: 1, 2: 4, 6: int(is_hot), 8: int(is_busy), 9: 0, 10: int(phase is Phase.ENCODING), 13: encoded_s, 17: 0,
        32: 0, 33: int(is_full), 34: free // 6_000_000, 35: free // BYTES_PER_S, 38: 0, 39: len(files), 45: 0,
        54: free // 1024, 55: 1, 58: marks, 60: 500, 68: 0, 69: 0, 75: 0, 77: 1, 79: 0, 82: 1, 83: 1,
        85: 0, 86: 0, 89: 12, 93: 0, 94: 65536, 95: 131072, 96: 1000, 97: 0, 99: 0, 101: 0, 104: 1, 105: 0,
        106: 0, 107: 0, 108: 0, 110: 0, 111: int(is_slow), 112: 0, 113: int(is_turbo), 114: owner, 115: 1,
        116: int(is_usb_controlled), 117: CARD_BYTES // 1024, 118: 0, 70: battery_percent,
    }  # fmt: skip
    return {**{str(key): value for key, value in values.items()}, "122": model_name}
