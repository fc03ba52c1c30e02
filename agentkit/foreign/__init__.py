"""Other toolkits' names for parts of agentkit, and the errors that suggest ours. Mostly tables."""
