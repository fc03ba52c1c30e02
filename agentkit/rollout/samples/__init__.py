"""The data set: samples, with which trajectories begin, made from rows of verl's or open-instruct's form."""
