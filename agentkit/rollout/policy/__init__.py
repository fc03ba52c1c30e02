"""What a rollout asks of the model that is trained, and engines that answer: a server, an agentkit model, a script."""
