"""One file for each stream of the headset: port, rate, configuration, description and decoding.

For a new stream copy `eye_tracking.py` (one record per packet), `magnetometer.py` (samples) or `microphone.py` (a
blob), with `pose_bytes=0` if no pose follows the payload.
"""
