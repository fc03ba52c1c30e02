"""Other toolkits' names for what agentkit has, and the errors that suggest ours. Mostly tables."""
