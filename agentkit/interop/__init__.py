"""Thin adapters to other systems, one room each; nothing of agentkit depends on them."""
