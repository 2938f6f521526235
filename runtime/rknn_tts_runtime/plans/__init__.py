"""Execution plans: which implementation each component of a model has, and which files and settings it takes."""
