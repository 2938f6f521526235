"""The command `probe`: the kit that shows on a board what no PC can tell of an engine."""
