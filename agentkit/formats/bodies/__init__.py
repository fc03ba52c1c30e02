"""The bodies of calls, read: one file for each kind."""
