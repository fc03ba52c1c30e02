"""Other toolkits' names for parts of agentkit, and the errors that suggest agentkit's. Mostly tables."""
