"""Tools with a life, from creation to release: of any system's shape, with a sample's arguments."""
