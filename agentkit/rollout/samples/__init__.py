"""The data set: what a trajectory begins with, and how a row in verl's or open-instruct's form becomes that."""
