"""The command line ``everest``: thin, and every command imports only what it needs."""
