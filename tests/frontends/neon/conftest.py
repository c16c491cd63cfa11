"""What several tests of networks need."""

import signal

import pytest


@pytest.fixture
def interrupts():
    """Ctrl-C as a user has it: whoever began the tests may ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
