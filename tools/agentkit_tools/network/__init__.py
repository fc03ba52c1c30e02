"""Requests that reach only the addresses that they may reach."""
