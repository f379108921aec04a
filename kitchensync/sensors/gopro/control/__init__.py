"""A GoPro over HTTP, USB and Bluetooth: state, shutter, settings, download."""
