"""Sets up the environments that rknn-tts runs in, from the locks in requirements/.

Standard library only, and in the syntax of Python 3.6: this code runs before anything is installed, under whatever
Python the machine has, so that a wrong one gets a sentence instead of a traceback. From Python:

    from environments.setup import ensure
    python = ensure(root, "rknn-2.3.2")      # Path of the environment's python; raises environments.trouble.Trouble

From a shell: `environments/run rknn-2.3.2 --print-python`.
"""
