"""Ready-made tools for agentkit, built only on its public API. Import each from its own module."""
