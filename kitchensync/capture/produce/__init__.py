"""From a device to the queue: receive, number, notice silence and the end, write the ledger."""
