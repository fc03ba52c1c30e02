"""Thin adapters to other systems, one package each; nothing else in agentkit depends on them."""
