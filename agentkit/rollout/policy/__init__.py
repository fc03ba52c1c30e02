"""The interface to the model that is trained, and its engines: a server, an agentkit model, a script."""
