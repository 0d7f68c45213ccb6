"""Numbers about the memory: pure functions of rows, with the intervals that they can carry."""
