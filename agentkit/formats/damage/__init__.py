"""What is read after damage: where reading goes on, what is repaired, what is completed."""
