"""Ready-made tools for agentkit, written on its public API only. Import each from its own module."""
