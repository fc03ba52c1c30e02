"""Stores in SQL: the operations once, a bridge to threads, two databases."""
