"""Task graphs: model, orders, scripts and judging, as pure functions."""
