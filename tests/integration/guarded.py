#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Serve a folder over HTTP on the loopback to whoever gives the user and password that stdin names.

usage: guarded.py FOLDER PORT <user:password
"""

import base64
import functools
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


class Guarded(SimpleHTTPRequestHandler):
    """Answers 401 to everybody else."""

    wanted = ""

    def send_head(self):
        """Send the head of an answer if it may be sent, as GET and HEAD do first."""
        if self.headers.get("Authorization") == self.wanted:
            return super().send_head()
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="guarded"')
        self.send_header("Content-Length", "0")
        self.end_headers()
        return None


def main():
    folder, port = sys.argv[1:]
    secret = base64.b64encode(sys.stdin.readline().strip().encode()).decode()
    Guarded.wanted = f"Basic {secret}"
    handler = functools.partial(Guarded, directory=folder)
    ThreadingHTTPServer(("127.0.0.1", int(port)), handler).serve_forever()


if __name__ == "__main__":
    main()
