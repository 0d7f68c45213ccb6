"""Local models: what embeds, what words, which to choose, and the cache of what they said."""
