"""The lake: schemas, cells, the lock, days, and what is published from them."""
