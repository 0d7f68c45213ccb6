"""What may be recalled, read from one read-only file. Standard library and ``text`` only.

Nothing is imported here: a hook pays for what it uses.
"""
