"""How many users there are over time, as a pure function: importing Locust changes how a process does its input and output."""

from collections.abc import Callable

STEPS = 8

# The share of the users there are, by the share of the time that has passed.
SHAPES: dict[str, Callable[[float], float]] = {
    "constant": lambda _: 1.0,
    "staircase": lambda passed: (int(passed * STEPS) + 1) / STEPS,
    "spike": lambda passed: 1.0 if 0.4 <= passed < 0.6 else 0.1,
    "ramp": lambda passed: passed,
    "soak": lambda passed: min(1.0, passed * 20),
}


def users_at(shape: str, users: int, passed: float) -> int:
    """How many users a shape has.

    Args:
        shape: a name of ``SHAPES``.
        users: the most there will be.
        passed: share of the time that has passed, 0 to 1.
    """
    return max(1, round(users * SHAPES[shape](passed)))
