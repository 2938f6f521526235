"""What our HTML pages share: their look, the environment that escapes, and texts of others made harmless."""
