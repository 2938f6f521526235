"""The front door: the command line, the pipeline behind it, and what it reports."""
