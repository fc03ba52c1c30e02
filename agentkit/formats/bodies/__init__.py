"""How the parts of a call are read, written and taught: one file for each kind."""
