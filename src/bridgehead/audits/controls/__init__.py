"""Controls: trainings that could learn nothing, or less, at the same budget."""
