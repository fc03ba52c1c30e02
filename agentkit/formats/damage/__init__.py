"""What is read after damage: where reading continues, what is repaired, what is completed."""
