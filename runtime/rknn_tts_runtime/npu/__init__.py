"""The RKNN C API of a board, through ctypes."""
