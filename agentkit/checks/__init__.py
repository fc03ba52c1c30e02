"""Checks of what a caller passed, and guesses at what was meant."""
