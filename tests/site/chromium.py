"""A headless Chromium, driven over a pipe: what a page writes to its console, and how wide it is.

The protocol is Chromium's DevTools: JSON messages with a zero byte between them, on file
descriptors 3 and 4 (https://chromedevtools.github.io/devtools-protocol/). So nothing has to be
installed but the browser.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
"""What the browser may be called."""
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--allow-file-access-from-files", "--remote-debugging-pipe",
)  # fmt: skip
"""It shows files of the site, and asks nobody for anything."""
PATIENCE_S = 60.0
TALLEST = 8000
"""Pixels of a window that is as tall as its page (chosen): of the tallest pages it is a part."""
WIDE = """
[...document.querySelectorAll('body *')].filter(e => {
  const box = e.getBoundingClientRect();
  if (box.right <= WIDTH + 1 || box.width === 0) return false;
  for (let p = e; p; p = p.parentElement)
    if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(p).overflowX) && p !== document.body
        && p !== document.documentElement && p.getBoundingClientRect().right <= WIDTH + 1)
      return false;
  return getComputedStyle(e).position !== 'fixed';
}).slice(0, 5).map(e => e.tagName + '.' + e.className)
"""
"""Elements that reach beyond the width, and lie in nothing that scrolls."""
BROKEN = "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
"""Pictures that could not be shown."""


@dataclass(frozen=True)
class Shown:
    """How a page came out."""

    messages: tuple[str, ...]
    scroll_width: int
    width: int
    wide: tuple[str, ...]
    broken: tuple[str, ...]

    @property
    def faults(self) -> list[str]:
        """Say all that is wrong."""
        found = [*self.messages, *(f"picture missing: {name}" for name in self.broken)]
        if self.scroll_width > self.width or self.wide:
            found.append(f"{self.scroll_width} wide in {self.width}: {', '.join(self.wide)}")
        return found


class Chromium:
    """One tab of a browser; ``show`` loads a page into it."""

    def __init__(self, to: int, of: int) -> None:
        self._to, self._of = to, of
        self._number = 0
        self._rest = b""
        self._session = ""
        self._events: list[dict[str, Any]] = []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def show(self, page: Path | str, width: int, *, dark: bool = False) -> Shown:
        """Load a page at a width, and return how it came out."""
        url = page.resolve().as_uri() if isinstance(page, Path) else page
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])
        self._events.clear()
        self._ask("Page.navigate", url=url)
        self._await("Page.loadEventFired")
        self._value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return Shown(
            tuple(self._messages()),
            self._value("document.documentElement.scrollWidth"),
            width,
            tuple(self._value(WIDE.replace("WIDTH", str(width)))),
            tuple(self._value(BROKEN)),
        )

    def picture(self, path: Path) -> None:
        """Write the whole page as PNG."""
        height = self._value("document.documentElement.scrollHeight")
        width = self._value("innerWidth")
        # A window as tall as the page: else what scrolls by itself is not painted further down.
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=min(height, TALLEST), deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        self._value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        taken = self._ask("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(taken["data"]))

    def _messages(self) -> Iterator[str]:
        """Yield what the page wrote to the console, and requests that failed."""
        for event in self._events:
            about = event["params"]
            if event["method"] == "Runtime.consoleAPICalled":
                words = [str(a.get("value", a.get("description"))) for a in about["args"]]
                yield f"console.{about['type']}: {' '.join(words)}"
            elif event["method"] == "Runtime.exceptionThrown":
                yield f"exception: {about['exceptionDetails']['text']}"
            elif event["method"] == "Log.entryAdded":
                yield f"{about['entry']['level']}: {about['entry']['text']}"
            elif event["method"] == "Network.requestWillBeSent":
                url = about["request"]["url"]
                if url.startswith(("http:", "https:", "ws:", "wss:")):
                    yield f"asks the network for {url}"

    def _value(self, expression: str) -> Any:
        result = self._ask(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in result:
            raise RuntimeError(f"Chromium: {result['exceptionDetails']}")
        return result["result"].get("value")

    def _ask(self, method: str, **words: Any) -> dict[str, Any]:
        """Send a command; return its result, events that come before it are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": words}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"Chromium, {method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self._events.append(answer)

    def _await(self, method: str) -> None:
        while not any(event.get("method") == method for event in self._events):
            self._events.append(self._receive())

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_S
        while b"\0" not in self._rest:
            if not select.select([self._of], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("Chromium does not answer")
            read = os.read(self._of, 1 << 16)
            if not read:
                raise RuntimeError("Chromium ended")
            self._rest += read
        message, _, self._rest = self._rest.partition(b"\0")
        received: dict[str, Any] = json.loads(message)
        return received


def find() -> str | None:
    """Return the path of a Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def _pipe() -> tuple[int, int]:
    """Return the ends of a pipe, away from the descriptors that the browser wants."""
    ends = os.pipe()
    reader, writer = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return reader, writer


@contextmanager
def chromium(path: str) -> Iterator[Chromium]:
    """Start a browser with an empty profile; it ends with the block."""
    to_read, to = _pipe()
    of, of_write = _pipe()
    # The shell gives the browser our two pipes as descriptors 3 and 4.
    words = f'exec "$@" 3<&{to_read} 4>&{of_write}'
    flags = (*FLAGS, "about:blank")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            ["bash", "-c", words, "bash", path, f"--user-data-dir={profile}", *flags],
            pass_fds=(to_read, of_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(of_write)
        try:
            yield Chromium(to, of)
        finally:
            os.close(to)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(of)
