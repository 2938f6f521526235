"""Every pass earns its place: which variant of an engine is the cheapest, and where that was found out."""
