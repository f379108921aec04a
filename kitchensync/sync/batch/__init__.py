"""Synchronize one recording or many, on local processes or a cluster."""
