"""A real Chromium, driven by its DevTools protocol over two pipes: no library, no open port.

Messages are JSON texts that end in a zero byte: https://chromedevtools.github.io/devtools-protocol
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--remote-debugging-pipe",
)  # fmt: skip


def find() -> str | None:
    """The system's own; Debian's, where it may be installed; or none."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    if os.geteuid() == 0 and shutil.which("apt-get"):
        plain = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]
        for command in (["apt-get", "update"], install):
            with suppress(subprocess.TimeoutExpired):
                subprocess.run(command, check=False, timeout=240, env=plain, capture_output=True)
        return shutil.which("chromium")
    return None


@dataclass
class Page:
    """One tab, and everything it said while it was open."""

    process: subprocess.Popen[bytes]
    to_browser: int
    from_browser: int
    session: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)
    _number: int = 0
    _rest: bytes = b""

    def call(self, method: str, **words: Any) -> dict[str, Any]:
        """Ask, and wait for the answer; what else arrives is kept."""
        self._number += 1
        asked = {"id": self._number, "method": method, "params": words}
        if self.session:
            asked["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(asked).encode() + b"\0")
        while True:
            message = self._next(30)
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return dict(message.get("result", {}))
            self.events.append(message)

    def _next(self, seconds: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self.from_browser], [], [], seconds)[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self.from_browser, 1 << 16)
            if not piece:
                raise RuntimeError("the browser has gone")
            self._rest += piece
        text, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(text))

    def open(self, path: Path) -> float:
        """Seconds until the page was loaded and painted."""
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        began = time.perf_counter()
        self.call("Page.navigate", url=path.as_uri())
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._next(30))
        # Two frames: the second begins when the first has been painted.
        self.evaluate("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")
        return time.perf_counter() - began

    def evaluate(self, expression: str) -> Any:
        found = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        return found["result"].get("value")

    def screen(self, width: int, height: int = 800, *, dark: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 500,
        )  # fmt: skip
        chosen = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[chosen])

    def screenshot(self, path: Path) -> None:
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        made = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(made["data"]))

    @property
    def complaints(self) -> list[dict[str, Any]]:
        """Console messages, uncaught errors, and what the browser itself logged."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [e for e in self.events if e.get("method") in kinds]

    @property
    def requests(self) -> list[str]:
        """Addresses that the page asked for."""
        sent = (e for e in self.events if e.get("method") == "Network.requestWillBeSent")
        return [e["params"]["request"]["url"] for e in sent]


@contextmanager
def browser(executable: str, profile: Path) -> Iterator[Page]:
    """A fresh profile and one tab, gone afterwards."""
    theirs_in, to_browser = os.pipe()
    from_browser, theirs_out = os.pipe()
    # The protocol is spoken on descriptors 3 and 4, and nowhere else.
    moved = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
    command = [executable, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(
        ["bash", "-c", moved, "bash", *command], pass_fds=(theirs_in, theirs_out),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        page = Page(process, to_browser, from_browser)
        target = page.call("Target.createTarget", url="about:blank")["targetId"]
        attached = page.call("Target.attachToTarget", targetId=target, flatten=True)
        page.session = attached["sessionId"]
        yield page
    finally:
        process.terminate()
        process.wait(20)
        os.close(to_browser)
        os.close(from_browser)
