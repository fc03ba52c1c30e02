"""JSON Schema: traversed, described in words, rewritten for each API."""
