"""usage: explore_server_test.py HDPSIM SOURCE_FOLDER

What `hdpsim explore` serves, to whom, and how it ends. Needs no browser.
"""
import http.client
import json
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from explorer import PATIENCE_S, Explorer

HDPSIM, SOURCE = sys.argv[1:3]
TINY = SOURCE + "/configs/studies/tiny.yaml"
ENDLESS = ["data.steps=1000000"]


class Served(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.explorer = Explorer(HDPSIM, SOURCE, TINY, folder=self.folder.name)

    def tearDown(self):
        self.explorer.end()
        self.folder.cleanup()

    def request(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", int(self.explorer.port), timeout=PATIENCE_S)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer, text

    def own(self, path):
        return f"/{self.explorer.token}/{path}"

    def ask(self, settings):
        question = json.dumps({"want": "answer", "set": settings})
        answer, text = self.request("POST", self.own("ask"), question)
        self.assertEqual(answer.status, 200)
        return [json.loads(line) for line in text.decode().split("\n") if line]

    def begin_endless(self):
        """A connection to which steps are reported."""
        connection = socket.create_connection(("127.0.0.1", int(self.explorer.port)), timeout=PATIENCE_S)
        question = json.dumps({"want": "answer", "set": ENDLESS}).encode()
        connection.sendall(f"POST {self.own('ask')} HTTP/1.1\r\nHost: 127.0.0.1:{self.explorer.port}\r\n"
                           f"Content-Length: {len(question)}\r\n\r\n".encode() + question)
        seen = b""
        while b'"progress"' not in seen:
            seen += connection.recv(1 << 16)
        return connection

    def wait_until_idle(self):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            before = self.explorer.processor_s()
            time.sleep(0.5)
            if self.explorer.processor_s() - before <= 1:
                return
        self.fail("the server goes on")

    def test_page_stands_alone_and_permits_nothing_else(self):
        answer, text = self.request("GET", self.own(""))
        self.assertEqual(answer.status, 200)
        policy = answer.getheader("Content-Security-Policy")
        nonce = policy.split("'nonce-")[1].split("'")[0]
        self.assertIn("default-src 'none'", policy)
        self.assertIn("connect-src 'self'", policy)
        self.assertIn("frame-ancestors 'none'", policy)
        self.assertIn(f'<script nonce="{nonce}">'.encode(), text)
        self.assertNotIn(b"src=", text)
        for name in dict(answer.getheaders()):
            self.assertNotIn("access-control", name.lower())
        again, _ = self.request("GET", self.own(""))
        self.assertNotIn(nonce, again.getheader("Content-Security-Policy"))

    def test_requests_of_others_are_refused(self):
        port = self.explorer.port
        question = json.dumps({"want": "answer", "set": []})
        refused = [("/", {}), ("/ask", {}), ("/" + "0" * 64 + "/ask", {}), (self.own("ask"), {"Host": "example.com"}),
                   (self.own("ask"), {"Host": f"example.com:{port}"}), (self.own("ask"), {"Origin": "http://example.com"}),
                   (self.own("ask"), {"Origin": "null"}), (self.own("ask"), {"Sec-Fetch-Site": "cross-site"}),
                   (self.own("lengths?name=x"), {"Origin": "http://example.com"})]
        for path, headers in refused:
            for method in ("GET", "POST", "OPTIONS", "PUT"):
                with self.subTest(method=method, path=path, headers=headers):
                    answer, text = self.request(method, path, question, headers)
                    self.assertEqual(answer.status, 403)
                    self.assertNotIn(self.explorer.token.encode(), text)
                    self.assertIsNone(answer.getheader("Access-Control-Allow-Origin"))
        answer, _ = self.request("POST", self.own("ask"), question, {"Origin": f"http://127.0.0.1:{port}"})
        self.assertEqual(answer.status, 200)

    def test_it_listens_on_this_machine_alone(self):
        with open(f"/proc/{self.explorer.process.pid}/net/tcp", encoding="ascii") as table:
            port = f":{int(self.explorer.port):04X} "
            places = [line.split()[1] for line in table if port in line.split()[1] + " " and line.split()[3] == "0A"]
        self.assertEqual(places, ["0100007F" + port.strip()])

    def raw(self, head, body=b"", part=1 << 20):
        """The answer to these bytes, all of it; what the server does not read any more is not sent."""
        with socket.create_connection(("127.0.0.1", int(self.explorer.port)), timeout=PATIENCE_S) as connection:
            answer = b""
            try:
                connection.sendall(head.encode())
                for at in range(0, len(body), part):
                    connection.sendall(body[at:at + part])
                while more := connection.recv(1 << 16):
                    answer += more
            except ConnectionError:
                pass
        return answer

    def head(self, method="POST", path="ask", **headers):
        lines = [f"{method} {self.own(path)} HTTP/1.1", f"Host: 127.0.0.1:{self.explorer.port}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return "\r\n".join(lines) + "\r\n\r\n"

    def test_bodies_that_are_too_long_endless_or_packed_are_refused_before_they_are_read(self):
        refused = [(413, self.head(Content_Length=(1 << 20) + 1)),
                   (413, self.head(path="lengths?name=x", Content_Length=(64 << 20) + 1)),
                   (413, self.head(Content_Length=2**64 - 1)),
                   (411, self.head()),
                   (411, self.head(Transfer_Encoding="chunked")),
                   (411, self.head(Transfer_Encoding="chunked", Content_Length=3)),
                   (411, self.head(Content_Length="3\r\nContent-Length: 4")),
                   (415, self.head(Content_Length=3, Content_Encoding="gzip")),
                   (415, self.head(Content_Length=3, Content_Type="multipart/form-data; boundary=x")),
                   (405, self.head("PUT", Content_Length=3)), (405, self.head("DELETE")), (405, self.head("OPTIONS"))]
        for status, head in refused:
            with self.subTest(head=head):
                self.assertIn(f" {status} ".encode(), self.raw(head).split(b"\r\n")[0])

    def test_what_stands_before_a_body_has_a_length(self):
        before = self.explorer.memory_bytes()
        line = b"x" * (64 << 20)
        for head, body in (("", line), ("GET /", line), (self.head("GET", "")[:-2] + "Cookie: ", line),
                           (self.head("GET", "")[:-2], b"Cookie: 1\r\n" * (1 << 22))):
            with self.subTest(head=head):
                self.assertNotIn(b" 200 ", self.raw(head, body))
        self.assertLess(self.explorer.memory_bytes() - before, len(line) // 4)
        cookies = "; ".join(f"name{i}=value" for i in range(300))  # of other programs of this machine
        self.assertIn(b" 200 ", self.raw(self.head("GET", "", Cookie=cookies, Connection="close"))[:20])

    def test_no_parts_of_a_page_are_given(self):
        whole = self.raw(self.head("GET", ""))
        for ranges in ("0-1", ",".join(["0-"] * 2000), "x", "5-1"):
            for name in ("Range", "range"):
                with self.subTest(ranges=ranges[:20]):
                    answer = self.raw(self.head("GET", "", **{name: "bytes=" + ranges}))
                    self.assertIn(b" 200 ", answer[:20])
                    self.assertEqual(len(answer), len(whole))

    def test_a_second_host_or_origin_is_refused(self):
        own = f"127.0.0.1:{self.explorer.port}"
        for headers in ({"Host": "example.com"}, {"Host": own}, {"Origin": f"http://{own}\r\nOrigin: http://example.com"},
                        {"Sec_Fetch_Site": "same-origin\r\nSec-Fetch-Site: cross-site"}):
            with self.subTest(headers=headers):
                self.assertIn(b" 403 ", self.raw(self.head("GET", "", **headers))[:20])

    def test_a_question_that_is_nested_without_an_end_is_none(self):
        for question in (b"[" * (1 << 20), b'{"a":' * 100_000, b'{"want": "answer", "set": ' + b"[" * 100_000):
            answer = self.raw(self.head(Content_Length=len(question)), question)
            self.assertIn(b"something that this program does not know", answer)
        settings = [".".join(["mesh"] * 20_000) + "=1", "mesh=" + "[" * 20_000]
        for setting in settings:
            line, = self.ask([setting])
            self.assertIn("nested too deeply", line["text"])

    def test_answer_is_that_of_the_study(self):
        *_, last = self.ask(["sweep.data.context=[64Ki]", "data.steps=2"])
        self.assertTrue(last["final"])
        self.assertEqual(last["result"]["runs"], self.explorer.study(TINY, "--set", "sweep=null", "--set", "data.steps=2"))

    def test_problems_are_those_of_the_command(self):
        line, = self.ask(["mesh.tp=3"])
        self.assertEqual(line["kind"], "problems")
        self.assertEqual(line["problems"][0]["path"], "mesh.tp")
        self.assertIn(line["text"].strip(), self.explorer.refusal(TINY, "--set", "mesh.tp=3", "--set", "sweep=null"))

    def test_closed_connection_ends_its_run(self):
        connection = self.begin_endless()
        connection.close()
        self.wait_until_idle()
        self.assertTrue(self.ask(["data.steps=1"])[-1]["final"])

    def test_signal_ends_it_in_the_middle_of_an_answer(self):
        connection = self.begin_endless()  # of so many steps that none waits for the last one
        self.assertEqual(self.explorer.end(signal.SIGTERM), 128 + signal.SIGTERM)
        connection.close()
        self.assertEqual(list(pathlib.Path(self.folder.name).iterdir()), [])

    def test_interrupt_ends_it_and_leaves_no_files(self):
        self.ask(["data.steps=1"])
        self.assertNotEqual(list(pathlib.Path(self.folder.name).iterdir()), [])
        self.assertEqual(self.explorer.end(), 128 + signal.SIGINT)
        self.assertEqual(list(pathlib.Path(self.folder.name).iterdir()), [])


class Started(unittest.TestCase):
    def start(self, *arguments):
        return subprocess.run([HDPSIM, "--data-dir", SOURCE, "explore", *arguments], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)

    def test_port_that_is_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            done = self.start(TINY, "--port", str(taken.getsockname()[1]))
        self.assertEqual(done.returncode, 3)
        self.assertIn("is in use", done.stderr)

    def test_port_that_is_chosen(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        with Explorer(HDPSIM, SOURCE, TINY, "--port", port) as explorer:
            self.assertEqual(explorer.port, port)

    def test_study_that_is_wrong(self):
        done = self.start("there-is-none.yaml")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
