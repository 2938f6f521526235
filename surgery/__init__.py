"""Graph rewrites for the NPU: one pass a module, each declared exact or bounded. Knows no family."""
