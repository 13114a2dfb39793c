"""`hdpsim explore` as tests run it."""
import json
import re
import signal
import subprocess

PATIENCE_S = 600  # ends what hangs, on any machine; nothing is measured by it


class Explorer:
    """A server about a study, ended with Ctrl-C after `with`."""

    def __init__(self, hdpsim, data, *arguments, folder=None):
        self._hdpsim = [hdpsim, "--data-dir", data]
        self.process = subprocess.Popen([*self._hdpsim, "explore", *arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, cwd=folder,
                                        env={"TMPDIR": str(folder)} if folder else None)
        self.address = self.process.stdout.readline().strip()
        self.port, self.token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([0-9a-f]{64})/", self.address).groups()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self, with_signal=signal.SIGINT):
        """The exit code."""
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
        code = self.process.wait(timeout=PATIENCE_S)
        self.process.stdout.close()
        return code

    def study(self, *arguments, folder=None):
        """The runs that `hdpsim study` prints."""
        command = [*self._hdpsim, "study", *arguments, "--format", "json"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
        return json.loads(done.stdout)["runs"]

    def refusal(self, *arguments):
        """What `hdpsim study` says of wrong input."""
        done = subprocess.run([*self._hdpsim, "study", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 2, done
        return done.stderr

    def memory_bytes(self):
        """The most memory that the server has had so far."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            [line] = [line for line in file if line.startswith("VmHWM:")]
        return int(line.split()[1]) << 10

    def processor_s(self):
        """The processor time of the server so far, in ticks."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])
