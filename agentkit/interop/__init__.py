"""Thin adapters to other systems, one file or package each; of agentkit only the command line imports them."""
