"""Checks of a caller's arguments, and suggestions for wrong ones."""
