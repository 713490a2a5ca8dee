"""The logic of scalebook: pure functions over plain data.  Standard library only."""
