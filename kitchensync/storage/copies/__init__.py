"""Copies of a recording on other stores, and reading through to them."""
