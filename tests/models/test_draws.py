from __future__ import annotations

import hashlib

import numpy as np

from models.draws import uniform


def test_uniform_is_the_stream_of_pcg64_for_seed_and_name() -> None:
    stream = np.random.PCG64(int.from_bytes(hashlib.sha256(b"7 a.weight").digest()[:16], "little"))
    raw = stream.random_raw(2)
    words = [int(raw[0]) & 0xFFFFFFFF, int(raw[0]) >> 32, int(raw[1]) & 0xFFFFFFFF]
    wanted = [2 + 3 * (word >> 9) / 2**23 for word in words]
    np.testing.assert_allclose(uniform("a.weight", (3,), 7, 2.0, 5.0), wanted, atol=1e-6)


def test_uniform_is_even_over_its_range_and_another_for_another_name() -> None:
    one = uniform("a", (100, 100), 0, -1.0, 3.0)
    assert one.shape == (100, 100)
    assert str(one.dtype) == "float32"
    assert -1 <= one.min() < -0.99
    assert 2.99 < one.max() <= 3
    assert np.histogram(one, 4)[0].min() > 2300
    assert not np.array_equal(one, uniform("b", (100, 100), 0, -1.0, 3.0))
