"""Stateful tools, from creation to release: adapted from any framework, with a sample's arguments."""
