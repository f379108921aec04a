"""The GoPro: control, and what its files hold."""
