"""Load shapes: how many users there are over time.

    locust -f loadtests/users.py,loadtests/shapes.py --headless --host URL --shape staircase --users 32 --run-time 10m ChatUser

``--users`` is the most there will be, ``--run-time`` the whole time. Without this file Locust keeps ``--users`` all the time.
"""

from locust import LoadTestShape, events
from locust.argument_parser import LocustArgumentParser

from loadtests.load import SHAPES, users_at


@events.init_command_line_parser.add_listener
def _options(parser: LocustArgumentParser) -> None:
    parser.add_argument("--shape", choices=sorted(SHAPES), default="constant", help="How many users there are over time.")


class Shape(LoadTestShape):
    """Locust's hook: it is asked every second."""

    use_common_options = True

    def tick(self) -> tuple[int, float] | None:
        """Users wanted and how many start a second, or None at the end."""
        options = self.runner.environment.parsed_options
        passed = self.get_run_time() / options.run_time
        if passed >= 1:
            return None
        users = users_at(options.shape, options.num_users, passed)
        return users, float(max(1, users))
