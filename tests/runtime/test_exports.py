"""What `import rknn_tts_runtime` brings: the names that its README uses, and no package but numpy."""

from __future__ import annotations

import subprocess
import sys

import rknn_tts_runtime

LOADED = "import sys, rknn_tts_runtime; print(*sorted({name.split('.')[0] for name in sys.modules}))"


def test_every_exported_name_is_there_once() -> None:
    names = rknn_tts_runtime.__all__
    assert [name for name in names if not hasattr(rknn_tts_runtime, name)] == []
    assert len(set(names)) == len(names)


def test_import_loads_nothing_but_numpy() -> None:
    done = subprocess.run([sys.executable, "-I", "-c", LOADED], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if not name.startswith("_")} - set(sys.stdlib_module_names)
    plain = subprocess.run(
        [sys.executable, "-I", "-c", LOADED.replace("rknn_tts_runtime", "numpy")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert loaded - set(plain.stdout.split()) == {"rknn_tts_runtime"}
