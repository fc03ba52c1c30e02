"""JSON Schema: walked, said in words, rewritten for each API."""
