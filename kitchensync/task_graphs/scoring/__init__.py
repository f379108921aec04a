"""Judgement of recordings against task graphs, and checks of the graphs."""
