"""What holds for all tests."""

import signal
import threading


def pytest_configure() -> None:
    """Let children hear Ctrl-C, which a program that a shell has started in the background ignores."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
