"""What the report says of the circumstances of its runs."""

import pytest

from valuate.report.about import _memory, _processor_time


def run(process=None, peak=None, processor=None):
    """A record; stores that were made before processes were written down have none."""
    record = {"peak_megabytes": peak, "seconds": {"data": 1.0}}
    if process is not None:
        record |= {"process": process, "seconds": {"data": 1.0, "processor": processor}}
    return record


@pytest.mark.parametrize(
    ("runs", "jobs", "said"),
    [
        # A process counts once, with its most; so many as ran side by side are added up.
        ([run(1, 1024.0), run(1, 2048.0), run(2, 1024.0)], 2, "2.0 GB; of 2 together, at most 3.0 GB."),
        ([run(1, 2048.0), run(2, 1024.0), run(3, 1024.0), run(4, 1536.0)], 2, "2.0 GB; of 2 together, at most 3.5 GB."),
        ([run(1, 1024.0), run(2, 2048.0)], 1, "2.0 GB."),
        ([run(peak=2048.0), run(peak=1024.0)], 2, "2.0 GB."),
    ],
)
def test_memory_of_one_process_and_of_all(runs, jobs, said):
    assert _memory(runs, jobs) == [f"The most memory that one of the processes used: {said}"]


def test_memory_that_the_system_does_not_tell():
    assert _memory([run(1), run(2)], 2) == []


def test_processor_time():
    assert (
        _processor_time([run(1, processor=200.0), run(2, processor=400.0)])
        == " that used 10 minutes of one core's time"
    )
    assert _processor_time([run(1, processor=200.0), run()]) == ""
