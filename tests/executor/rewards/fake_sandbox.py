#!/usr/bin/env python3
"""A sandbox service for tests: runs Python as SandboxFusion's /run_code does, or misbehaves as its path says.

usage: python3 fake_sandbox.py LOG
Prints its port, then serves until its standard input ends. Every body that it is sent becomes a line of LOG.
"""
import json
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOG = open(sys.argv[1], "a", buffering=1)
LOCK = threading.Lock()
SEEN = {}


def run(body):
    """The reply to one body: the code does not compile, fails, takes too long, or ends."""
    done = {"status": "Finished", "execution_time": 0.01, "return_code": 0, "stdout": "", "stderr": ""}
    reply = {"status": "Success", "message": "", "compile_result": None, "run_result": done, "files": {}}
    if "COMPILE ERROR" in body["code"]:  # of another language: Python's own errors are the run's
        return reply | {"status": "Failed", "compile_result": done | {"return_code": 1}, "run_result": None}
    if "SANDBOX ERROR" in body["code"]:
        return reply | {"status": "SandboxError", "run_result": None}
    try:
        process = subprocess.run([sys.executable, "-I", "-c", body["code"]], input=body["stdin"] or "",
                                 capture_output=True, text=True, timeout=body["run_timeout"])
    except subprocess.TimeoutExpired:
        return reply | {"status": "Failed", "run_result": done | {"status": "TimeLimitExceeded", "return_code": None}}
    reply["run_result"] = done | {"return_code": process.returncode, "stdout": process.stdout, "stderr": process.stderr}
    return reply | {"status": "Success" if process.returncode == 0 else "Failed"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, status, data, length=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.say(200, b'"pong"')

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with LOCK:
            LOG.write(text + "\n")
            SEEN[text] = SEEN.get(text, 0) + 1
            times = SEEN[text]
        try:
            self.answer(json.loads(text), times)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def answer(self, body, times):
        way = self.path.removeprefix("/")
        bad = "bad" in body["code"]
        if way == "busy" and times <= 2:
            return self.say(504, b"later")
        if way == "shut" and times <= 2:
            self.close_connection = True
            return None
        if bad and way == "error":
            return self.say(500, b"it broke")
        if bad and way == "garbage":
            return self.say(200, b"<html>hello</html>")
        if bad and way == "half":
            self.say(200, b'{"status": "Suc', length=1000)
            self.close_connection = True
            return None
        if bad and way == "hang":
            time.sleep(60)
        if bad and way == "drip":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            for _ in range(600):
                self.wfile.write(b" ")
                time.sleep(0.1)
        if bad and way == "flood":
            return self.say(200, b"{" + b" " * (64 << 20) + b"}")
        if bad and way == "lie":
            return self.say(200, b'{"status": "Success", "run_result": {"status": "Finished", "stdout": 4}}')
        if bad and way == "deep":
            return self.say(200, b"[" * 200000)
        return self.say(200, json.dumps(run(body)).encode())


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
