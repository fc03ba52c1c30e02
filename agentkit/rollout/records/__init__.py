"""Records of trajectories: states, rewards and calls; the file of records, and figures over them."""
