"""The kinds of parts of a call, with their readers, writers and rules: one file for each kind."""
