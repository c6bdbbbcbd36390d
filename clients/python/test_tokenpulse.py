# Copyright The tokenpulse Authors
# SPDX-License-Identifier: Apache-2.0

import asyncio
import gc
import json
import os
import sys
import threading
import time
import types
import unittest
from unittest import mock

import tokenpulse
from tokenpulse import timed


class Span:
    """Stands in for a span of OpenTelemetry."""

    def __init__(self):
        self.attributes, self.ended, self.status = {}, None, None

    def set_attribute(self, key, value):
        self.attributes[key] = value

    def set_attributes(self, attributes):
        self.attributes.update(attributes)

    def is_recording(self):
        return self.ended is None

    def get_span_context(self):
        return types.SimpleNamespace(is_valid=True)

    def set_status(self, status):
        self.status = status

    def end(self, end_time):
        self.ended = end_time


class Broken:
    """Is an item that cannot be read."""

    def __getattr__(self, name):
        raise RuntimeError(name)


class Stream:
    """Is built like the Stream of OpenAI's and Anthropic's libraries."""

    def __init__(self, items):
        self._items = items
        self._iterator = self.__stream__()
        self.closed = False

    def __stream__(self):
        yield from self._items

    def __iter__(self):
        for item in self._iterator:
            yield item

    def __next__(self):
        return self._iterator.__next__()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.closed = True


class AsyncStream(Stream):
    async def __stream__(self):
        for item in self._items:
            await asyncio.sleep(0)
            yield item

    async def __aiter__(self):
        async for item in self._iterator:
            yield item

    async def close(self):
        self.closed = True


class Manager:
    """Is built like the manager that stream() of these libraries returns."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        return self.stream

    def __exit__(self, *_):
        self.stream.close()

    async def __aenter__(self):
        return self.stream

    async def __aexit__(self, *_):
        await self.stream.close()


def chat(*deltas):
    return {"choices": [{"index": i, "delta": delta, "finish_reason": None} for i, delta in enumerate(deltas)]}


def objects(item):
    """Returns the item as libraries do: as objects in place of dictionaries."""
    return json.loads(json.dumps(item), object_hook=lambda members: types.SimpleNamespace(**members))


def block(delta):
    return {"type": "content_block_delta", "index": 0, "delta": delta}


CHANNELS = {
    "OpenAI chat": [
        (chat({"role": "assistant", "content": ""}), None),
        (chat({"reasoning_content": "x"}), "reasoning"),
        (chat({"content": "x"}), "content"),
        (chat({"tool_calls": [{"index": 0}]}), "tool_call"),
        (chat({}), None),
        ({"choices": [], "usage": {"prompt_tokens": 17, "completion_tokens": 12}}, None),
    ],
    "manager of OpenAI": [
        ({"type": "chunk", "chunk": chat({"content": "x"})}, "content"),
        ({"type": "content.delta", "delta": "x"}, None),
        ({"type": "chunk", "chunk": {"choices": [], "usage": {"prompt_tokens": 17, "completion_tokens": 12}}}, None),
    ],
    "audio of OpenAI": [
        (chat({"audio": {"id": "a", "transcript": "x"}}), "content"),
        (chat({"audio": {"id": "a", "data": "AAAA"}}), "audio"),
        (chat({"audio": {"expires_at": 1}}), None),
        ({"type": "response.output_audio.delta", "delta": "AAAA"}, "audio"),
        ({"type": "response.audio.delta", "delta": ""}, None),
        ({"type": "response.output_audio_transcript.delta", "delta": "x"}, "content"),
        ({"type": "speech.audio.delta", "audio": "AAAA"}, "audio"),
    ],
    "OpenAI completions": [({"choices": [{"text": "x"}]}, "content"), ({"choices": [{"text": ""}]}, None)],
    "Responses API": [
        ({"type": "response.output_item.added", "item": {"type": "message"}}, None),
        ({"type": "response.reasoning_summary_text.delta", "delta": "x"}, "reasoning"),
        ({"type": "response.output_text.delta", "delta": "x"}, "content"),
        ({"type": "response.output_item.added", "item": {"type": "function_call", "name": "x"}}, "tool_call"),
        ({"type": "response.function_call_arguments.delta", "delta": "{"}, "tool_call"),
        ({"type": "response.output_text.done", "text": "xx"}, None),
        ({"type": "response.completed", "response": {"usage": {"input_tokens": 17, "output_tokens": 12}}}, None),
    ],
    "Anthropic": [
        ({"type": "message_start", "message": {"usage": {"input_tokens": 10, "cache_read_input_tokens": 7, "output_tokens": 1}}}, None),
        ({"type": "content_block_start", "content_block": {"type": "text", "text": ""}}, None),
        (block({"type": "thinking_delta", "thinking": "x"}), "reasoning"),
        (block({"type": "text_delta", "text": "x"}), "content"),
        ({"type": "text", "text": "x"}, None),  # which its manager adds
        ({"type": "content_block_start", "content_block": {"type": "tool_use", "name": "x"}}, "tool_call"),
        (block({"type": "input_json_delta", "partial_json": "{"}), "tool_call"),
        ({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 12}}, None),
        ({"type": "message_stop"}, None),
    ],
    "texts": [("x", "content"), ("", None)],
}


class TimedTest(unittest.TestCase):
    def setUp(self):
        self.span = Span()

    def offsets(self):
        return self.span.attributes["tokenpulse.chunk.offsets"]

    def test_channels_and_usage(self):
        for name, items in CHANNELS.items():
            for form in (lambda item: item, objects):
                with self.subTest(name, form=form):
                    self.setUp()
                    sent = [item if isinstance(item, str) else form(item) for item, _ in items]
                    self.assertEqual(list(timed(lambda: iter(sent), span=self.span)), sent)
                    expected = [channel for _, channel in items if channel]
                    self.assertEqual(len(self.offsets()), len(expected))
                    some = any(channel != "content" for channel in expected)
                    self.assertEqual(self.span.attributes.get("tokenpulse.chunk.channels"), expected if some else None)
                    usage = [self.span.attributes.get("gen_ai.usage." + key) for key in ("input_tokens", "output_tokens")]
                    self.assertIn(usage, ([17, 12], [None, None]))
                    self.assertEqual(usage[0] is None, "usage" not in json.dumps([item for item, _ in items]))

    def test_audio_tokens_are_reported_apart(self):
        for details in ({"completion_tokens": 12, "completion_tokens_details": {"audio_tokens": 9}}, {"output_tokens": 12, "output_tokens_details": {"audio_tokens": 9}}):
            self.setUp()
            list(timed(lambda: iter([chat({"content": "x"}), {"choices": [], "usage": details}]), span=self.span))
            self.assertEqual(self.span.attributes["gen_ai.usage.output_tokens"], 12)
            self.assertEqual(self.span.attributes["gen_ai.usage.audio.output_tokens"], 9)

    def test_streams_of_libraries_stay_the_same_object(self):
        stream = Stream([chat({"content": "x"}), chat({"content": "y"})])
        passed = timed(lambda: stream, span=self.span)
        self.assertIs(passed, stream)
        self.assertEqual(next(passed), chat({"content": "x"}))
        self.assertEqual(list(passed), [chat({"content": "y"})])
        self.assertEqual(len(self.offsets()), 2)

    def test_offsets_are_microseconds_since_the_start(self):
        def items():
            for _ in range(3):
                time.sleep(0.02)
                yield "x"

        list(timed(items, span=self.span, start=time.time_ns() - 1_000_000_000))
        first, second, third = self.offsets()
        self.assertTrue(1_019_000 <= first < 1_500_000, first)
        self.assertTrue(19_000 <= second - first < 500_000 and second < third, (first, second, third))

    def test_async(self):
        async def main():
            stream = AsyncStream(["x", "y"])

            async def create():
                return stream

            passed = await timed(create, span=self.span)
            self.assertIs(passed, stream)
            self.assertEqual([item async for item in passed], ["x", "y"])
            async with timed(lambda: Manager(AsyncStream(["x"])), span=self.span) as managed:
                self.assertEqual([item async for item in managed], ["x"])

        asyncio.run(main())
        self.assertEqual(len(self.offsets()), 1)
        self.assertNotIn("tokenpulse.outcome", self.span.attributes)

    def test_manager(self):
        with timed(lambda: Manager(Stream(["x", "y"])), span=self.span) as stream:
            self.assertEqual(list(stream), ["x", "y"])
        self.assertTrue(stream.closed)
        self.assertEqual(len(self.offsets()), 2)

    def test_left_streams_are_cancelled(self):
        def close(stream):
            next(stream)
            stream.close()
            self.assertTrue(stream.closed)
            return stream

        def leave(stream):
            for _ in stream:
                break

        for step in (close, leave):
            for item, outcome in ((chat({"content": "x"}), "cancelled"), ({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}, None)):
                self.setUp()
                kept = step(timed(lambda: Stream([item, item]), span=self.span))
                if kept is None:
                    gc.collect()
                self.assertEqual(len(self.offsets()), 1)
                self.assertEqual(self.span.attributes.get("tokenpulse.outcome"), outcome, step)

    def test_a_left_stream_ends_at_its_last_item(self):
        with mock.patch.object(tokenpulse, "trace", fake_trace(self.span)), mock.patch.object(tokenpulse, "context", mock.Mock(), create=True):
            before = time.time_ns()
            stream = timed(lambda: iter(["x", "y"]))
            next(stream)
            after = time.time_ns()
            time.sleep(0.1)
            stream.close()
        self.assertTrue(before <= self.span.ended <= after + 5_000_000)

    def test_own_span(self):
        provider = fake_trace(self.span)
        contexts = mock.Mock()
        with mock.patch.object(tokenpulse, "trace", provider), mock.patch.object(tokenpulse, "context", contexts, create=True):
            before = time.time_ns()
            list(timed(lambda: iter(["x"]), {"gen_ai.request.model": "m"}))
            self.assertTrue(before < self.span.ended < before + 1_000_000_000)
            name, = provider.started.call_args.args
            self.assertEqual(name, "chat m")
            self.assertEqual(provider.started.call_args.kwargs["kind"], "client")
            contexts.detach.assert_called_once_with(contexts.attach.return_value)
            self.setUp()
            provider.span = self.span
            with self.assertRaises(ValueError):
                timed(mock.Mock(side_effect=ValueError("secret")))
        self.assertEqual(self.span.status, "error")
        self.assertEqual(self.span.attributes, {"error.type": "ValueError"})

    def test_errors_pass_without_their_text(self):
        class RateLimited(Exception):
            status_code = 429

        for error, kind in ((ValueError("secret"), "ValueError"), (RateLimited("secret"), "429")):
            self.setUp()

            def items():
                yield "x"
                raise error

            with self.assertRaises(type(error)) as caught:
                list(timed(items, span=self.span))
            self.assertIs(caught.exception, error)
            self.assertEqual(self.span.attributes["error.type"], kind)
            self.assertNotIn("secret", str(self.span.attributes))

    def test_faults_of_the_observer_never_reach_the_application(self):
        broken = mock.Mock(side_effect=RuntimeError)
        spans = [object(), types.SimpleNamespace(set_attributes=broken), types.SimpleNamespace(set_attributes=lambda _: None, is_recording=broken)]
        items = [None, 7, "x", Broken(), {"type": 5}, {"choices": "x"}, {"choices": [None]}, {"usage": "x"}]
        for span in spans:
            self.assertEqual(list(timed(lambda: iter(items), span=span)), items)
        for answer in (None, 7, "text", [1], {"usage": 7}):
            self.assertIs(timed(lambda: answer), answer)

    def test_whole_answer(self):
        timed(lambda: {"usage": {"prompt_tokens": 17, "completion_tokens": 12}}, span=self.span)
        self.assertEqual(self.span.attributes, {"gen_ai.usage.input_tokens": 17, "gen_ai.usage.output_tokens": 12})

    def test_limits(self):
        list(timed(lambda: iter(["x"] * 10_003), span=self.span))
        self.assertEqual(len(self.offsets()), 10_000)
        self.assertEqual(self.span.attributes["tokenpulse.chunk.dropped"], 3)

    def test_items_of_an_unknown_library_are_frames(self):
        list(timed(lambda: iter([{"candidates": []}, {"candidates": [1]}]), span=self.span))
        self.assertEqual(len(self.offsets()), 2)
        self.assertIs(self.span.attributes["tokenpulse.chunk.frames"], True)

    def test_each_choice_has_a_token(self):
        list(timed(lambda: iter([chat({"content": "x"}, {"content": "y"}), chat({"content": "x"}, {})]), span=self.span))
        self.assertEqual(self.span.attributes["tokenpulse.chunk.tokens"], [2, 1])

    def test_posts(self):
        blocked = threading.Event()
        with mock.patch("urllib.request.urlopen") as urlopen, mock.patch.dict(os.environ):
            os.environ.pop("TOKENPULSE_ENDPOINT", None)
            list(timed(lambda: iter(["secret"])))
            os.environ["TOKENPULSE_ENDPOINT"] = "http://collector"
            before = threading.active_count()
            usage = {"completion_tokens": 12, "completion_tokens_details": {"audio_tokens": 9}}
            list(timed(lambda: iter([chat({"audio": {"data": "secret"}}), {"choices": [], "usage": usage}])))
            wait_until(lambda: urlopen.call_count == 1 and threading.active_count() == before)
            request = urlopen.call_args.args[0]
            self.assertEqual(request.full_url, "http://collector/v1/tokens")
            self.assertNotIn(b"secret", request.data)
            chunk, end = map(json.loads, request.data.splitlines()[1:])
            self.assertEqual(chunk["channel"], "audio")
            self.assertEqual((end["usage"], end["attributes"]), ({"output_tokens": 12}, {"gen_ai.usage.audio.output_tokens": 9}))
            urlopen.side_effect = lambda *_, **__: blocked.wait(5) and 1 / 0
            started = time.monotonic()
            for _ in range(20):
                list(timed(lambda: iter(["x"])))
            self.assertLess(time.monotonic() - started, 2, "the application does not wait")
            wait_until(lambda: urlopen.call_count == 1 + 16)
            blocked.set()
            wait_until(lambda: threading.active_count() == before)
            self.assertEqual(urlopen.call_count, 1 + 16, "at most 16 at a time")


def wait_until(holds):
    deadline = time.monotonic() + 10
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError("not in time")
        time.sleep(0.001)


def fake_trace(span):
    """Stands in for the module opentelemetry.trace."""
    fake = types.SimpleNamespace(span=span, started=mock.Mock())

    def start_span(*args, **kwargs):
        fake.started(*args, **kwargs)
        return fake.span

    fake.get_tracer = lambda _: types.SimpleNamespace(start_span=start_span)
    fake.SpanKind = types.SimpleNamespace(CLIENT="client")
    fake.StatusCode = types.SimpleNamespace(ERROR="error")
    fake.Status = lambda code: code
    fake.set_span_in_context = lambda span: span
    return fake


if __name__ == "__main__":
    sys.exit(unittest.main())
