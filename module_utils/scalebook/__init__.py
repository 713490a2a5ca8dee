"""What scalebook thinks with: pure functions over plain data, standard library only."""
