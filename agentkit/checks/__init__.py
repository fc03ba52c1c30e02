"""What a caller gave, held against what is taken; and what he probably meant."""
