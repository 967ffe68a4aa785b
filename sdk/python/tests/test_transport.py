"""Retries, replicas and settings, against small servers that answer what each test tells them to."""

import json
import os
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock

import berth
from berth import transport

SUBMITTED = {"job_id": 7, "state": "pending", "submit_time": "2026-01-02T03:04:05Z"}
UNAVAILABLE = {"code": "unavailable", "detail": "the database restarts", "help": "try again", "status": 503}
HANG_UP = None


class Replica:
    """A server that gives `answers` in turn, the last one again and again, and keeps the requests."""

    def __init__(self, test: unittest.TestCase, *answers: tuple[int, object] | None) -> None:
        replica = self
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                replica.requests.append((self.command, self.path, dict(self.headers), body))
                answer = answers[min(len(replica.requests), len(answers)) - 1]
                if answer is HANG_UP:
                    self.close_connection = True
                    return
                status, content = answer
                text = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = answer

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        test.addCleanup(server.server_close)
        test.addCleanup(server.shutdown)
        self.url = f"http://127.0.0.1:{server.server_port}"


def dead_url() -> str:
    """The address of a server that is no more."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.server_close()
    return f"http://127.0.0.1:{server.server_port}"


class TransportTest(unittest.TestCase):
    def setUp(self) -> None:
        patch = mock.patch.object(transport, "FIRST_WAIT_SECONDS", 0.001)
        patch.start()
        self.addCleanup(patch.stop)

    def client(self, *servers: str, token: str = "t") -> berth.Client:
        client = berth.Client(server=",".join(servers), token=token)
        self.addCleanup(client.close)
        return client

    def test_a_submission_is_repeated_under_one_key(self) -> None:
        replica = Replica(self, (503, UNAVAILABLE), HANG_UP, (201, SUBMITTED))
        self.assertEqual(self.client(replica.url).jobs.submit({"command": ["true"]}).job_id, 7)
        self.assertEqual(len(replica.requests), 3)
        self.assertEqual(len({headers["Idempotency-Key"] for _, _, headers, _ in replica.requests}), 1)
        self.assertEqual({body for _, _, _, body in replica.requests}, {b'{"command":["true"]}'})

    def test_each_submission_has_a_key_of_its_own(self) -> None:
        replica = Replica(self, (201, SUBMITTED))
        for _ in range(2):
            self.client(replica.url).jobs.submit("#!/bin/sh\n")
        self.assertEqual(len({headers["Idempotency-Key"] for _, _, headers, _ in replica.requests}), 2)
        self.assertEqual({headers["Content-Type"] for _, _, headers, _ in replica.requests}, {"text/x-shellscript"})

    def test_another_replica_answers_for_a_dead_one(self) -> None:
        replica = Replica(self, (200, {"items": []}))
        self.assertEqual(list(self.client(dead_url(), replica.url + "/prefix/").jobs.list(name="a b", state="running")), [])
        [(_, path, headers, _)] = replica.requests
        self.assertEqual(path, "/prefix/v1/jobs?state=running&name=a+b")
        self.assertEqual(headers["Host"], replica.url.removeprefix("http://"))
        self.assertEqual(headers["Authorization"], "Bearer t")

    def test_an_act_that_may_have_been_done_is_not_repeated(self) -> None:
        replica = Replica(self, HANG_UP)
        with self.assertRaisesRegex(berth.Unreachable, "whether it was done is not known"):
            self.client(replica.url).jobs.cancel(7)
        self.assertEqual(len(replica.requests), 1)

    def test_a_service_that_stays_unavailable_says_so(self) -> None:
        replica = Replica(self, (503, UNAVAILABLE))
        with self.assertRaises(berth.ApiError) as raised:
            self.client(replica.url).jobs.get(7)
        self.assertEqual((raised.exception.status, raised.exception.code), (503, "unavailable"))
        self.assertEqual(len(replica.requests), transport.ROUNDS)

    def test_no_server_at_all_is_unreachable(self) -> None:
        with self.assertRaisesRegex(berth.Unreachable, "cannot be reached at http://127.0.0.1"):
            self.client(dead_url()).jobs.get(7)

    def test_a_page_of_a_proxy_is_an_error_too(self) -> None:
        replica = Replica(self, (502, b"<html>Bad gateway</html>"))
        with self.assertRaises(berth.ApiError) as raised:
            self.client(replica.url).jobs.get(7)
        self.assertEqual((raised.exception.status, raised.exception.code), (502, "http_502"))

    def test_a_stream_that_breaks_off_is_not_an_end(self) -> None:
        replica = Replica(self, (200, b': hello\n\ndata: {"type":"output","text":"a"}\n\n'))
        events = self.client(replica.url).jobs.follow(7)
        self.assertEqual(next(events)["text"], "a")
        with self.assertRaises(berth.Unreachable):
            next(events)

    def test_settings_come_from_the_environment(self) -> None:
        replica = Replica(self, (200, {"items": []}))
        with tempfile.NamedTemporaryFile("w", suffix=".token") as file:
            file.write("from-file\n")
            file.flush()
            for extra, expected in (({}, "Bearer from-file"), ({"BERTH_TOKEN": "from-variable"}, "Bearer from-variable")):
                environment = {"BERTH_SERVER": replica.url, "BERTH_TOKEN": "", "BERTH_TOKEN_FILE": file.name, **extra}
                with mock.patch.dict(os.environ, environment), berth.Client() as client:
                    list(client.nodes.list())
                self.assertEqual(replica.requests[-1][2]["Authorization"], expected)
