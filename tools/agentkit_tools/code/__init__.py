"""Code and commands of a model, and the reports of their ends."""
