"""One folder: opened, walked, searched and changed, and nothing outside it."""
