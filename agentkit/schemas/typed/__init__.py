"""Typed values, as text: JSON and Python values as models write them, read and written by their JSON Schema."""
