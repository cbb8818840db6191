"""What the stack's processes hold, as a table."""

from loadtests.held import Look, held


def look(minute, memory, files=10, groups=1, requests=0):
    return Look(
        at=60.0 * minute, memory_mib={"gateways": memory}, files={"gateways": files}, processor_s={"gateways": 6.0 * minute},
        placement_groups=groups, requests=requests,
    )  # fmt: skip


def test_growth_is_told_by_the_second_half():
    looks = [look(minute, 100.0 if minute < 30 else 100.0 + (minute - 30), files=10 + minute) for minute in range(61)]
    row = next(line for line in held(looks).splitlines() if line.startswith("| gateways"))
    assert "| 100, 102, 128 |" in row
    assert "+50 |" in row
    assert "| 12, 42, 68 |" in row
    assert row.endswith("| 10.0 |")


def test_placement_groups_and_requests_are_told():
    table = held([look(0, 1, groups=1), look(1, 1, groups=2, requests=4), look(2, 1, groups=3)])
    assert "| placement groups | 1, 2, 3 |" in table
    assert "| requests in engines | 0, 4, 0 |" in table
