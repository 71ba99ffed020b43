"""A server of the program under test."""

import re
import subprocess


class Server:
    """A server, and a way to end and start it again at the same address."""

    def __init__(self, program, *flags):
        self.program, self.flags, self.port = program, flags, "0"
        self.start()

    def start(self):
        command = [self.program, "serve", "--port", self.port, *self.flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        self.port = re.search(r":(\d+)/", self.address).group(1)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=30)
