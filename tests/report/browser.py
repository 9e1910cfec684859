"""A real browser, driven over a pipe by its DevTools protocol: pages are opened, asked, printed."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LONGEST_S = 60.0
"""For which an answer is waited."""

PROGRAM = "chromium"
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--hide-scrollbars",
    "--mute-audio",
    "--no-first-run",
    "--remote-debugging-pipe",
)


class Browser:
    """One page of a running browser, with what it asked for and complained of."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._rest = b""
        self._number = 0
        self._session = ""
        self._events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for part in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{part}.enable")

    def open(self, path: Path, width: int, height: int = 900) -> None:
        """Open a file in a window of that size and wait until it is drawn."""
        self.resize(width, height)
        self._events.clear()
        self.call("Page.navigate", url=path.as_uri())
        self._wait("Page.loadEventFired")

    def reopen(self, width: int, height: int = 900) -> None:
        """Open the same page again in a window of another size."""
        self.resize(width, height)
        self._events.clear()
        self.call("Page.reload")
        self._wait("Page.loadEventFired")

    def resize(self, width: int, height: int = 900) -> None:
        """Give the window another size, and what is drawn the time to follow."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def ask(self, script: str) -> Any:
        """Return what a script is worth; promises are waited for."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def printed(self) -> bytes:
        """Return the page as PDF, as its style for paper says."""
        answer = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        return base64.b64decode(answer["data"])

    def complaints(self) -> list[str]:
        """Return the errors and warnings that the page met since it was opened."""
        found = []
        for event in self._events:
            method, given = event["method"], event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(str(given["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning"):
                found.append(str(given["args"]))
            elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
                found.append(given["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """Return the addresses that were asked for since the page was opened."""
        return [
            event["params"]["request"]["url"]
            for event in self._events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def call(self, method: str, **given: Any) -> dict[str, Any]:
        """Return the answer to one command."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": given}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result

    def _wait(self, method: str) -> None:
        while not any(event["method"] == method for event in self._events):
            self._next()

    def _next(self) -> dict[str, Any]:
        """Return the next message; events are kept."""
        end = time.monotonic() + LONGEST_S
        while b"\0" not in self._rest:
            ready, _to, _odd = select.select([self._from], [], [], max(0.0, end - time.monotonic()))
            chunk = os.read(self._from, 1 << 20) if ready else b""
            assert chunk, "the browser does not answer"
            self._rest += chunk
        text, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self._events.append(message)
        return message


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start a browser that knows nothing of its user, and end it."""
    read_by_browser, to_browser = os.pipe()
    from_browser, written_by_browser = os.pipe()
    # The browser reads commands from 3 and answers on 4.
    script = f'exec "$@" 3<&{read_by_browser} 4>&{written_by_browser}'
    process = subprocess.Popen(
        ["bash", "-c", script, "bash", PROGRAM, *OPTIONS, f"--user-data-dir={profile}"],
        pass_fds=(read_by_browser, written_by_browser),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_by_browser)
    os.close(written_by_browser)
    try:
        yield Browser(to_browser, from_browser)
    finally:
        os.close(to_browser)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
        process.kill()
        process.wait()
        os.close(from_browser)
