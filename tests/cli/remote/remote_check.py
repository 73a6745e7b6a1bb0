#!/usr/bin/env python3
"""Holds `tessera serve` and `tessera mirror` against Python's http.client and raw sockets.

usage: remote_check.py PROGRAM
"""
import http.client
import http.server
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
COMPARED = ("metrics.jsonl", "samples.jsonl", "plan.json", "log.txt")


def line(step):
    return json.dumps({"step": step, "data": {"timing_s/step": 1 + step / 7}}) + "\n"


class Served:
    """`tessera serve` of one folder."""

    def __init__(self, run, token_file, port=0, options=()):
        self.process = subprocess.Popen(
            [PROGRAM, "serve", str(run), "--port", str(port), "--token-file", str(token_file),
             *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said = {}
        while "look" not in said:
            words = self.process.stdout.readline().split(None, 1)
            assert words, self.process.stderr.read()
            said[words[0]] = words[1].strip()
        self.port = int(said["at"].split(":")[1])
        self.token = said["token"]

    def ask(self, path, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers.setdefault("Authorization", "Bearer " + self.token)
        connection.request(method, path, headers=headers)
        reply = connection.getresponse()
        body = reply.read()
        connection.close()
        return reply, body

    def raw(self, data):
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as link:
            try:
                link.sendall(data)
                said = b""
                while part := link.recv(65536):
                    said += part
            except ConnectionError:
                pass
            return said

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(20)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


class Remote(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.at = pathlib.Path(self.folder.name)
        self.run_folder = self.at / "RUN"
        (self.run_folder / "ranks").mkdir(parents=True)
        (self.run_folder / "ranks" / "0").write_bytes(os.urandom(136))
        (self.run_folder / "plan.json").write_text('{"tessera_plan": 1}')
        (self.run_folder / "metrics.jsonl").write_text("".join(line(i) for i in range(2000)))
        (self.run_folder / "secret").write_text("secret")
        (self.at / "outside").write_text("outside")
        self.token_file = self.at / "token"
        self.cache = self.at / "cache"
        self.servers = []

    def tearDown(self):
        for server in self.servers:
            if server.process.poll() is None:
                server.end()
        self.folder.cleanup()

    def serve(self, port=0, options=()):
        self.servers.append(Served(self.run_folder, self.token_file, port, options))
        return self.servers[-1]

    def mirror(self, port, token=None):
        """One `tessera mirror --once`."""
        own = dict(os.environ, TESSERA_REMOTE_TOKEN=token or self.token_file.read_text().strip())
        return subprocess.run(
            [PROGRAM, "mirror", f"127.0.0.1:{port}/RUN", "-o", str(self.cache), "--once"],
            env=own, capture_output=True, text=True, timeout=60, check=False)

    def copy(self, port):
        return self.cache / f"127.0.0.1-{port}" / "RUN"

    def assert_same(self, port):
        for name in COMPARED:
            original, copy = self.run_folder / name, self.copy(port) / name
            self.assertEqual(original.exists(), copy.exists(), name)
            if original.exists():
                self.assertEqual(original.read_bytes(), copy.read_bytes(), name)
        self.assertEqual((self.run_folder / "ranks/0").read_bytes(),
                         (self.copy(port) / "ranks/0").read_bytes())

    def test_answers_parts_of_its_files_and_nothing_else(self):
        server = self.serve()
        self.assertEqual(self.token_file.stat().st_mode & 0o777, 0o600)
        reply, body = server.ask("/runs")
        self.assertEqual((reply.status, json.loads(body)["runs"]), (200, ["RUN"]))
        whole = (self.run_folder / "metrics.jsonl").read_bytes()
        self.assertEqual(server.ask("/runs/0/metrics.jsonl")[1], whole)
        reply, body = server.ask("/runs/0/metrics.jsonl", Range="bytes=100-299")
        self.assertEqual((reply.status, body), (206, whole[100:300]))
        self.assertEqual(reply.getheader("Content-Range"), f"bytes 100-299/{len(whole)}")
        self.assertEqual(server.ask("/runs/0/metrics.jsonl", Range="bytes=500-")[1], whole[500:])
        self.assertEqual(
            server.ask("/runs/0/metrics.jsonl", Range=f"bytes={len(whole)}-")[0].status, 416)
        os.symlink(self.at / "outside", self.run_folder / "oom.json")
        os.mkfifo(self.run_folder / "log.txt")
        for path in ("/runs/0/secret", "/runs/0/../../outside", "/runs/0/%2e%2e/outside",
                     "/runs/0/oom.json", "/runs/0/log.txt", "/runs/1/metrics.jsonl", "/runs/-1",
                     "/runs/0/ranks/0", "/runs/0/", "/", "//runs", "/runs/99999999999999999999"):
            self.assertEqual(server.ask(path)[0].status, 404, path)
        self.assertEqual(server.ask("/runs", method="DELETE")[0].status, 405)
        self.assertEqual(server.end(), 0)

    def test_refuses_whoever_has_no_token(self):
        server = self.serve()
        for given in ("", "Bearer ", "Bearer " + "0" * 64, server.token,
                      "Bearer " + server.token[:-1], "Bearer " + server.token + "0"):
            reply, body = server.ask("/runs/0/metrics.jsonl", Authorization=given)
            self.assertEqual(reply.status, 401, given)
            self.assertNotIn(b"step", body)
        done = self.mirror(server.port, "0" * 64)
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("the token is refused", done.stderr)
        self.token_file.chmod(0o644)
        other = subprocess.run([PROGRAM, "serve", str(self.run_folder), "--token-file",
                                str(self.token_file)], capture_output=True, text=True, check=False)
        self.assertEqual(other.returncode, 65)
        self.assertIn("0600", other.stderr)

    def test_tells_runs_what_whoever_has_the_token_says(self):
        server = self.serve()
        at = "/runs/0/signals/"
        for word in ("pause", "go", "stop", "requeue"):
            reply, body = server.ask(at + word, "POST", **{"Content-Length": "0"})
            self.assertEqual((reply.status, b"found no ranks" in body), (409, True), body)
            self.assertEqual(server.ask(at + word, "POST", Authorization="")[0].status, 401)
            reply = server.ask(at + word)[0]
            self.assertEqual((reply.status, reply.getheader("Allow")), (405, "POST"))
        for word in ("", "kill", "pause/", "../pause"):
            self.assertEqual(server.ask(at + word, "POST")[0].status, 404, word)
        for path in ("/runs", "/runs/0", "/runs/0/pause", "/runs/0/metrics.jsonl"):
            self.assertEqual(server.ask(path, "POST")[0].status, 405, path)
        body = f"POST {at}stop HTTP/1.1\r\nAuthorization: Bearer {server.token}\r\n" \
            "Content-Length: 4\r\n\r\nstop"
        self.assertIn(b"413", server.raw(body.encode()).split(b"\r\n")[0])
        server.end()
        self.assertEqual(self.serve(options=["--read-only"]).ask(at + "stop", "POST")[0].status, 403)
        self.assertFalse((self.run_folder / "stop").exists())
        self.assertFalse((self.run_folder / "pause").exists())

    def test_stands_hostile_clients(self):
        server = self.serve()
        self.assertIn(b"431", server.raw(b"GET /runs HTTP/1.1\r\nX: " + b"a" * 100000))
        many = b"".join(b"X%d: 1\r\n" % i for i in range(20000))
        self.assertIn(b"431", server.raw(b"GET /runs HTTP/1.1\r\n" + many + b"\r\n"))
        server.raw(b"\x00\xff garbage\r\n\r\n")
        body = b"POST /runs HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1000
        self.assertNotIn(b"200", server.raw(body).split(b"\r\n")[0])
        idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(200)]
        started = time.monotonic()
        self.assertEqual(server.ask("/runs")[0].status, 200)
        self.assertLess(time.monotonic() - started, 5)
        for link in idle:
            link.close()

    def test_the_copy_is_the_original_while_that_grows(self):
        server = self.serve()
        stop = threading.Event()

        def write():
            step = 2000
            with open(self.run_folder / "metrics.jsonl", "a", encoding="utf-8") as out:
                while not stop.is_set():
                    out.write(line(step))
                    out.flush()
                    step += 1

        writer = threading.Thread(target=write)
        writer.start()
        for _ in range(8):
            self.assertEqual(self.mirror(server.port).returncode, 0)
            copy = (self.copy(server.port) / "metrics.jsonl").read_bytes()
            self.assertTrue((self.run_folder / "metrics.jsonl").read_bytes().startswith(copy))
        stop.set()
        writer.join()
        (self.run_folder / "plan.json").write_text('{"tessera_plan": 2}')
        (self.run_folder / "samples.jsonl").write_bytes(os.urandom(20_000_000))
        self.assertEqual(self.mirror(server.port).returncode, 0)
        self.assert_same(server.port)

    def test_files_that_are_cut_or_replaced_begin_anew(self):
        server = self.serve()
        metrics = self.run_folder / "metrics.jsonl"
        self.mirror(server.port)
        with open(metrics, "r+", encoding="utf-8") as out:  # cut in place, longer than before
            out.truncate(len("".join(line(i) for i in range(1000))))
            out.seek(0, os.SEEK_END)
            out.write("".join(line(i + 0.5) for i in range(1000, 3000)))
        self.mirror(server.port)
        self.assert_same(server.port)
        (self.run_folder / "fresh").write_text("".join(line(i + 0.25) for i in range(4000)))
        os.rename(self.run_folder / "fresh", metrics)
        (self.run_folder / "plan.json").unlink()
        self.mirror(server.port)
        self.assert_same(server.port)

    def test_goes_on_behind_what_it_has_when_the_server_is_back(self):
        server = self.serve()
        self.mirror(server.port)
        self.assertEqual(server.end(), 0)
        done = self.mirror(server.port)
        self.assertEqual(done.returncode, 74)
        state = json.loads((self.copy(server.port) / "mirror.json").read_text())
        self.assertIn("refused", state["fault"])
        with open(self.run_folder / "metrics.jsonl", "a", encoding="utf-8") as out:
            out.write("".join(line(i) for i in range(2000, 2500)))
        before = (self.copy(server.port) / "metrics.jsonl").stat().st_ino
        told = subprocess.run([PROGRAM, "signal", str(self.copy(server.port)), "pause"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(told.returncode, 65)
        self.assertIn("a copy of remote:", told.stderr)
        self.serve(server.port)
        self.assertEqual(self.mirror(server.port).returncode, 0)
        self.assert_same(server.port)
        self.assertEqual((self.copy(server.port) / "metrics.jsonl").stat().st_ino, before,
                         "it was copied anew")
        self.assertEqual(json.loads((self.copy(server.port) / "mirror.json").read_text())["fault"],
                         "")

    def test_writes_nothing_outside_its_folder(self):
        server = self.serve()
        (self.at / "here").mkdir()
        theirs = self.at / "here" / "mirror.json"
        theirs.write_text("theirs")
        own = dict(os.environ, TESSERA_REMOTE_TOKEN=server.token)
        for port, code in ((server.port, 0), (1, 74)):
            done = subprocess.run(
                [PROGRAM, "mirror", f"127.0.0.1:{port}", "-o", str(self.cache), "--once"], env=own,
                cwd=self.at / "here", capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(theirs.read_text(), "theirs")
        self.assertEqual([each.name for each in (self.at / "here").iterdir()], ["mirror.json"])

    def test_one_mirror_keeps_a_copy(self):
        server = self.serve()
        own = dict(os.environ, TESSERA_REMOTE_TOKEN=server.token)
        first = subprocess.Popen([PROGRAM, "mirror", f"127.0.0.1:{server.port}", "-o",
                                  str(self.cache)], env=own, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, text=True)
        try:
            self.assertIn("RUN", first.stdout.readline())
            second = self.mirror(server.port)
            self.assertEqual(second.returncode, 74, second.stderr)
            self.assertIn("mirror.lock", second.stderr)
        finally:
            first.kill()
            first.communicate()
        self.assertEqual(self.mirror(server.port).returncode, 0)
        self.assert_same(server.port)

    def test_a_file_that_is_rewritten_all_the_time_comes_whole_or_not(self):
        server = self.serve()
        stop = threading.Event()

        def rewrite():
            size = 0
            while not stop.wait(0.001):
                size = (size * 7 + 13) % 5000
                (self.run_folder / "fresh").write_text(json.dumps({"tessera_plan": "x" * size}))
                os.rename(self.run_folder / "fresh", self.run_folder / "plan.json")

        thread = threading.Thread(target=rewrite)
        own = dict(os.environ, TESSERA_REMOTE_TOKEN=server.token)
        thread.start()
        mirror = subprocess.Popen([PROGRAM, "mirror", f"127.0.0.1:{server.port}", "-o",
                                   str(self.cache)], env=own, stdout=subprocess.DEVNULL)
        try:
            seen = 0
            until = time.monotonic() + 3
            while time.monotonic() < until:
                plan = self.copy(server.port) / "plan.json"
                if plan.exists():
                    json.loads(plan.read_text())
                    seen += 1
                time.sleep(0.002)
        finally:
            stop.set()
            thread.join()
            mirror.kill()
            mirror.wait()
        self.assertEqual(self.mirror(server.port).returncode, 0)
        self.assert_same(server.port)

    def test_odd_times_and_questions(self):
        os.utime(self.run_folder / "metrics.jsonl", (-300000000.5, -300000000.5))
        server = self.serve()
        self.assertEqual(self.mirror(server.port).returncode, 0)
        self.assert_same(server.port)
        self.assertEqual((self.copy(server.port) / "metrics.jsonl").stat().st_mtime, -300000000.5)
        said = server.raw(f"HEAD /runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}"
                          "\r\nConnection: close\r\n\r\n".encode())
        self.assertTrue(said.startswith(b"HTTP/1.1 405"), said)
        self.assertTrue(said.endswith(b"\r\n\r\n"), said)
        named = self.at / os.fsdecode(b"lat\xe9n")
        named.mkdir()
        refused = subprocess.run([PROGRAM, "serve", str(named), "--token-file",
                                  str(self.token_file)], capture_output=True, timeout=20, check=False)
        self.assertNotEqual(refused.returncode, 0)

    def test_believes_no_hostile_server(self):
        file = {"name": "metrics.jsonl", "size": 1000, "modified_ns": 1, "id": 1}
        listing = {"tessera_run": 1, "now_ns": 1, "files": [file], "ranks": []}
        cases = {
            "path": dict(listing, files=[dict(file, name="../../escaped")]),
            "run": listing, "short": listing, "long": listing, "other part": listing,
            "garbage": None, "rank": dict(listing, ranks=[{"rank": -1, "record": "00"}])}

        class Fake(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            case = ""

            def log_message(self, *_):
                pass

            def do_GET(self):
                status, body, length, part = 200, b"", None, None
                if self.path == "/runs":
                    names = ["../RUN"] if self.case == "run" else ["RUN"]
                    body = json.dumps({"tessera_serve": 1, "runs": names}).encode()
                elif self.path == "/runs/0":
                    case = cases[self.case]
                    body = os.urandom(5000) if case is None else json.dumps(case).encode()
                else:
                    status, body, part = 206, b"x" * 1000, "bytes 0-999/1000"
                    if self.case == "short":
                        body, length = b"x" * 10, 1000
                    elif self.case == "long":
                        body = b"x" * 10_000_000
                    elif self.case == "other part":
                        part = "bytes 500-1499/5000"
                self.send_response(status)
                self.send_header("Content-Length", str(length or len(body)))
                if part:
                    self.send_header("Content-Range", part)
                self.end_headers()
                try:
                    self.wfile.write(body)
                except ConnectionError:
                    pass
                self.close_connection = True

        self.token_file.write_text("0" * 64)
        for case in cases:
            Fake.case = case
            with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Fake) as fake:
                thread = threading.Thread(target=fake.serve_forever)
                thread.start()
                port = fake.server_address[1]
                done = self.mirror(port)
                fake.shutdown()
                thread.join()
            copied = self.copy(port) / "metrics.jsonl"
            self.assertFalse(copied.exists() and copied.stat().st_size, case)
            if case != "other part":  # a file that changed meanwhile looks like it
                self.assertEqual(done.returncode, 74, case + done.stderr)
        self.assertFalse(list(self.at.rglob("escaped*")))


if __name__ == "__main__":
    unittest.main()
