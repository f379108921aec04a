"""Receive packets from a device, number them, queue them, detect silence and the end, and write the ledger."""
