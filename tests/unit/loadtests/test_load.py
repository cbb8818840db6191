"""How many users a shape has over time."""

import pytest

from loadtests.load import users_at


@pytest.mark.parametrize(
    ("shape", "users"),
    [("constant", [16, 16, 16, 16]), ("staircase", [2, 6, 10, 14]), ("spike", [2, 2, 16, 2]), ("ramp", [1, 4, 8, 12]), ("soak", [1, 16, 16, 16])],
)
def test_shapes(shape, users):
    assert [users_at(shape, 16, passed) for passed in (0.0, 0.25, 0.5, 0.75)] == users
