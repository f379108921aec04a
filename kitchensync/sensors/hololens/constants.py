"""Numbers and names of the hl2ss wire format (server 1.0.37)."""

from __future__ import annotations

from enum import IntEnum

MINIMUM_VERSION = (1, 0, 37)
"The server version whose wire format this package speaks."

POSE_BYTES = 64
"A pose: 16 x f32, row-major, row-vector convention (p_world = p_local x M), translation in the fourth row."

REMOTE_CONFIGURATION = "remote_configuration"
REMOTE_CONFIGURATION_PORT = 3809


class Mode(IntEnum):
    """First byte of a configuration; PV adds the two flags."""

    CONTINUOUS = 0
    CONTINUOUS_WITH_POSE = 1
    CONSTANTS = 2
    NOTHING = 3
    START_CAMERA = 4
    STOP_CAMERA = 8


class VideoProfile(IntEnum):
    """Encoder of a video stream."""

    H264_BASELINE = 0
    H264_MAIN = 1
    H264_HIGH = 2
    H265_MAIN = 3
    RAW = 255


class DepthProfile(IntEnum):
    """Packing of AHAT depth: in the same frame as the brightness, or as a Zdepth blob."""

    SAME = 0
    ZDEPTH = 1


class AudioProfile(IntEnum):
    """Encoder of the microphone, AAC by its bytes per second."""

    AAC_12000 = 0
    AAC_16000 = 1
    AAC_20000 = 2
    AAC_24000 = 3
    RAW = 255


class EncoderOption(IntEnum):
    """Keys of the encoder options."""

    GOP_SIZE = 10
    VLC_TIMESTAMP_FACTOR = 2**64 - 1
    VLC_TIMESTAMP_CONSTANT = 2**64 - 2
    ACQUISITION = 2**64 - 3
    STRIDE_MASK = 2**64 - 4
    MEDIA_INDEX = 2**64 - 5


class Command(IntEnum):
    """First byte of a remote-configuration command."""

    VERSION = 0x00
    UTC_OFFSET = 0x01
    PV_MARKER = 0x02
    PV_IS_ON = 0x03
    PV_FOCUS = 0x04
    PV_DENOISING = 0x05
    PV_WHITE_BALANCE_PRESET = 0x06
    PV_WHITE_BALANCE_VALUE = 0x07
    PV_EXPOSURE = 0x08
    PV_EXPOSURE_PRIORITY = 0x09
    PV_ISO = 0x0A
    PV_BACKLIGHT = 0x0B
    PV_SCENE_MODE = 0x0C
    FLAT_MODE = 0x0D
    RM_EYE_SELECTION = 0x0E
    PV_OPTIMISATION = 0x0F
    PV_PRIMARY_USE = 0x10
    PV_STABILISATION = 0x11
    PV_HDR = 0x12
    PV_REGION = 0x13
    THREAD_PRIORITY = 0x14
    QUIET_MODE = 0x15
    MAP_POINTS = 0x16
    RIG_POSES = 0x17
    CURRENT_TIME = 0x18
    SI_SAMPLING_DELAY = 0x19
    ENCODER_BUFFERING = 0x20
    READER_BUFFERING = 0x21
    LOOP_CONTROL = 0x22


class MapDirection(IntEnum):
    """Argument of MAP_POINTS."""

    PIXEL_TO_UNIT_PLANE = 0
    UNIT_PLANE_TO_PIXEL = 1


class MixerMode(IntEnum):
    """Source of extended audio; the last one requests the list of devices instead."""

    MICROPHONE = 0
    APPLICATION = 1
    BOTH = 2
    DEVICE_LIST = 3


class TimeSource(IntEnum):
    """Argument of CURRENT_TIME."""

    DEVICE_TICKS = 0
    UTC_FILETIME = 1


LEVEL_DEFAULT = 255  # lets the headset's encoder choose
AAC_LEVEL_L2 = 0x29  # the default of the official client
ARRAY_LEVEL = 0x2B
"With the raw profile: the five microphones instead of two channels."
PNG_FILTER_PAETH = 5  # the official client's choice; the filter changes only the size
STRIDE_MASK_DEFAULT = 63
VLC_TIMESTAMP_SHIFT = -125_000
"Ticks added to VLC timestamps, which are 12.5 ms late; the official client uses the same value."

AHAT_WIDTH = AHAT_HEIGHT = 512
AHAT_HZ = 45  # nominal: the headset lowers it to 15 or 5 while it sees no hands
VLC_WIDTH, VLC_HEIGHT, VLC_HZ = 640, 480, 30
LONGTHROW_WIDTH, LONGTHROW_HEIGHT = 320, 288

PV_FORMATS = frozenset(
    [
        (width, height, hz)
        for width, height in (
            (1952, 1100),
            (1920, 1080),
            (1504, 846),
            (1280, 720),
            (1128, 636),
            (960, 540),
            (760, 428),
            (640, 360),
            (500, 282),
            (424, 240),
        )
        for hz in (30, 15)
    ]
    + [(1504, 846, 60), (1504, 846, 5), (1952, 1100, 60)]
)
"(width, height, frames per second) that the front camera offers; anything else closes the connection."
