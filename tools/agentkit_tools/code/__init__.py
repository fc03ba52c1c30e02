"""Code and commands of a model, and what is told of how they ended."""
