"""What an engine costs, from its layer table: the modelled time, sums by operator and by target."""
