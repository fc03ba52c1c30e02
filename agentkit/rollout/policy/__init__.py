"""The interface to the model that is trained, and engines behind it: a server, an agentkit model, a script."""
