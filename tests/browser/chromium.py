"""A headless Chromium that a test looks through, by the DevTools protocol over a pipe: no package is needed for it."""
import base64
import fcntl
import itertools
import json
import os
import subprocess
import tempfile
import time

PATIENCE_S = 600  # ends what hangs, on any machine


class Chromium:
    """A browser of its own, gone after `with`."""

    def __init__(self, program, downloads):
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]

        def give_pipes():  # it reads from descriptor 3 and writes to 4
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self._process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             f"--user-data-dir={self._profile.name}", "about:blank"],
            preexec_fn=give_pipes, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in (to_browser, from_browser, *ends):
            os.close(end)
        self._numbers = itertools.count(1)
        self._rest = b""
        self.events = []
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._profile.cleanup()

    def _message(self):
        while b"\0" not in self._rest:
            more = os.read(self._read, 1 << 16)
            if not more:
                raise RuntimeError("Chromium has ended")
            self._rest += more
        text, self._rest = self._rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, **parameters):
        """The result of a method; events that arrive before it are kept."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") != number:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            else:
                return answer["result"]

    def open(self, address):
        return Page(self, address)


class Page:
    """A tab. Expressions are JavaScript of the page."""

    def __init__(self, browser, address):
        self._browser = browser
        self._target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=self._target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.call(f"{domain}.enable")
        self.go(address)

    def call(self, method, **parameters):
        return self._browser.call(method, self._session, **parameters)

    def go(self, address):
        """To another page, with an empty console."""
        self._first_event = len(self._browser.events)
        self.call("Page.navigate", url=address)

    def close(self):
        self._browser.call("Target.closeTarget", targetId=self._target)

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']['exception'].get('description')}")
        return result["result"].get("value")

    def wait_for(self, expression):
        """Waits until an expression is true; what it throws before, as in a page that is being loaded, is no harm."""
        end = time.monotonic() + PATIENCE_S
        while not self.value(f"(() => {{ try {{ return Boolean({expression}); }} catch {{ return false; }} }})()"):
            if time.monotonic() > end:
                raise RuntimeError(f"never true: {expression}")
            time.sleep(0.02)

    def press(self, key, code=None):
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key,
                      windowsVirtualKeyCode={"ArrowLeft": 37, "ArrowRight": 39, "Enter": 13, "Tab": 9, " ": 32}[key])

    def type_into(self, selector, text):
        """Replaces the text of a field, and leaves it with Tab."""
        self.value(f"(() => {{ const field = document.querySelector({json.dumps(selector)}); field.focus(); field.select(); }})()")
        self.call("Input.insertText", text=text)
        self.press("Tab")

    def choose_file(self, selector, path):
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", files=[str(path)], nodeId=node)

    def show_as(self, width, height=900, scheme="light"):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call("Emulation.setScrollbarsHidden", hidden=True)  # as if all of the width were the page's
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path, whole=True):
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def complaints(self):
        """What the page has said on its console, and what it could not load."""
        found = []
        self.value("1")  # events that have not been read yet come before its answer
        for event in self._browser.events[self._first_event:]:
            if event.get("sessionId") != self._session:
                continue
            parameters = event["params"]
            if event["method"] == "Log.entryAdded":
                found.append(parameters["entry"]["text"])
            if event["method"] == "Runtime.exceptionThrown":
                found.append(parameters["exceptionDetails"]["exception"].get("description", "an exception"))
            if event["method"] == "Runtime.consoleAPICalled":
                found.append(str(parameters["args"]))
        return found

    def requests(self):
        """The addresses of all requests."""
        return [event["params"]["request"]["url"] for event in self._browser.events[self._first_event:]
                if event.get("sessionId") == self._session and event["method"] == "Network.requestWillBeSent"]
