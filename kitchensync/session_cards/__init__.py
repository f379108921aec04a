"""The card of a recording: what it is worth, said while the participant is here, and again once its films are."""
