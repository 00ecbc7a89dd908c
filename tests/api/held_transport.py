"""A transport in a test's hands: nothing is sent, and the test says what the reader does."""

from __future__ import annotations


class Transport:
    """What a connection writes to, with a reader that can stop reading."""

    def __init__(self):
        self.sent = bytearray()
        self.closed = self.aborted = False
        self.reading = True
        self.unread = 0

    def write(self, data):
        self.sent += data

    def writelines(self, pieces):
        for piece in pieces:
            self.write(piece)

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True

    def abort(self):
        self.closed = self.aborted = True

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True

    def get_write_buffer_size(self):
        return self.unread

    def get_extra_info(self, name):
        return ("192.0.2.7", 1234) if name == "peername" else None

    def take(self):
        """What was sent since the last look."""
        sent, self.sent = bytes(self.sent), bytearray()
        return sent
