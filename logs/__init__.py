"""What the compiler printed: lines, their classes, the REGTASK gate, the layer table. Imports only contracts."""
