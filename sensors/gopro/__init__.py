"""The GoPro: control over HTTP, download, and what its files hold."""
