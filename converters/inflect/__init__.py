"""The family `inflect`: Inflect v2, Micro and Nano."""
