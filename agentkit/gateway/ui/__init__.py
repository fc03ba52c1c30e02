"""The page: watch an agent work, approve its calls, stop it, come back."""
