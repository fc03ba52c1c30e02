"""Tools with a life: what counts as one, in any system's shape; what a sample tells it; from creation to release."""
