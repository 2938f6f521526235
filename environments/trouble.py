"""The one error of this package."""


class Trouble(Exception):
    """A sentence for the person at the command line: what is wrong, where, what to do. Exit status 2."""
