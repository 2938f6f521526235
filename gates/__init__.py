"""Gates: plain arrays and graphs in, verdicts out. They know no family."""
