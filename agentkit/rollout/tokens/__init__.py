"""Trajectories as token ids: chat templates, what may become a control token, a history that only grows, parsers."""
