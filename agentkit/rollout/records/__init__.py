"""What is kept of a trajectory: its states, rewards and calls; the file of records, and figures over them."""
