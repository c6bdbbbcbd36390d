# Copyright The tokenpulse Authors
# SPDX-License-Identifier: Apache-2.0
"""Reports when the tokens of a streamed answer arrive, in the attributes of docs/timeline-attributes.md.

It sends no text of prompts or answers, and never fails or delays the application.
"""

import contextlib
import inspect
import json
import os
import re
import threading
import time
import urllib.request
import uuid

try:
    from opentelemetry import context, trace
except ImportError:
    trace = None

MAX_CHUNKS = 10_000  # recorded of one stream; further ones are counted
AUDIO_TOKENS = "gen_ai.usage.audio.output_tokens"
_posts = threading.BoundedSemaphore(16)  # at a time; further streams are not posted


def timed(call, attributes=None, span=None, start=None):
    """Makes a call to a model and reports the times of its tokens. Returns what the call returns.

    That is a stream of OpenAI or Anthropic, their manager of a stream, an iterator or generator, an awaitable of these,
    or a whole answer. attributes are those of the span, such as gen_ai.request.model. The values are written to span, if
    given, in place of a new one: it began at start (Unix time in nanoseconds, default: now), and the application ends it.
    """
    recorder = _safely(_Recorder, attributes, span, start)
    if recorder is None:
        return call()
    with recorder.making():
        result = call()
    return recorder.watch(result)


class _Recorder:
    def __init__(self, attributes, span, start):
        now = time.time_ns()
        self.start = now if start is None else start
        self.zero = time.perf_counter_ns() - (now - self.start)
        self.offsets, self.tokens, self.channels = [], [], []  # offsets in microseconds since the span's start
        self.last = 0  # nanoseconds since the span's start at which the last item came
        self.dropped, self.usage = 0, {}
        self.frames = False  # items of an unknown library, with or without a token
        self.complete = self.ended = False
        self.span, self.own = span, None
        if span is not None:
            span.set_attributes(attributes or {})
        self.attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.stream": True, **(attributes or {})}
        if span is not None or trace is None:
            return
        name = " ".join(str(self.attributes[k]) for k in ("gen_ai.operation.name", "gen_ai.request.model") if k in self.attributes)
        own = trace.get_tracer("tokenpulse").start_span(name, kind=trace.SpanKind.CLIENT, attributes=self.attributes, start_time=self.start)
        if own.get_span_context().is_valid:  # else no SDK is registered
            self.span = self.own = own

    @contextlib.contextmanager
    def making(self):
        """The span is the current one while the call is made."""
        token = _safely(lambda: self.own and context.attach(trace.set_span_in_context(self.own)))
        try:
            yield
        except BaseException as error:
            self.end(error)
            raise
        finally:
            if token is not None:
                _safely(context.detach, token)

    def watch(self, result):
        watched = _safely(self._watch, result)
        if watched is not None:
            return watched
        self.end(whole=True)
        return result

    def _watch(self, result):
        if inspect.isawaitable(result):
            return self._awaited(result)
        if hasattr(result, "_iterator"):  # of OpenAI and Anthropic, which read from it
            result._iterator = self._watch(result._iterator)
            close = result.close
            result.close = lambda: (self.end(left=True), close())[1]  # also at the end of a with statement
            return result
        if hasattr(result, "__next__"):
            return self._items(result)
        if hasattr(result, "__anext__"):
            return self._async_items(result)
        if hasattr(result, "__enter__") or hasattr(result, "__aenter__"):
            return _Manager(result, self)
        _read_usage(result, self.usage)
        return None

    async def _awaited(self, result):
        with self.making():
            value = await result
        return self.watch(value)

    def _items(self, iterator):
        try:
            for item in iterator:
                self.item(item)
                yield item
            self.end()
        except GeneratorExit:
            self.end(left=True)
            if hasattr(iterator, "close"):
                iterator.close()
            raise
        except BaseException as error:
            self.end(error)
            raise

    async def _async_items(self, iterator):
        try:
            async for item in iterator:
                self.item(item)
                yield item
            self.end()
        except GeneratorExit:
            self.end(left=True)
            if hasattr(iterator, "aclose"):
                await iterator.aclose()
            raise
        except BaseException as error:
            self.end(error)
            raise

    def item(self, item):
        self.last = time.perf_counter_ns() - self.zero
        _safely(self._item, item)

    def _item(self, item):
        kind = _get(item, "type")
        if kind == "chunk":  # of the manager of OpenAI, which repeats it in other events
            item, kind = _get(item, "chunk"), None
        _read_usage(item, self.usage)
        choices = _get(item, "choices")
        each = [{"text": item}] if isinstance(item, str) else [item] if choices is None else choices
        if kind in ("message_stop", "response.completed", "response.incomplete") or any(_get(c, "finish_reason") for c in each):
            self.complete = True
        self.frames = self.frames or not isinstance(item, str) and choices is None and kind is None
        channels = ["content"] if self.frames else list(filter(None, map(_channel_of, each)))
        if not channels:
            return
        if len(self.offsets) == MAX_CHUNKS:
            self.dropped += 1
            return
        self.offsets.append(self.last // 1000)
        self.tokens.append(len(channels))  # each choice has at least one
        self.channels.append(channels[0])

    def end(self, error=None, left=False, whole=False):
        """Ends the call, with its error if it has one. left: the application left the stream at its last item."""
        duration = self.last if left and self.last else time.perf_counter_ns() - self.zero
        if not self.ended:
            self.ended = True
            _safely(self._end, duration, error, left, whole)

    def _end(self, duration, error, left, whole):
        cancelled = left and not self.complete or type(error).__name__ in ("CancelledError", "GeneratorExit", "KeyboardInterrupt")
        kind = str(getattr(error, "status_code", None) or type(error).__name__)
        failure = None if error is None or cancelled else kind if re.fullmatch(r"[A-Za-z0-9_.:/-]{1,64}", kind) else "_OTHER"
        if self.span is not None:
            self._write(duration, cancelled, failure, whole)
        elif os.environ.get("TOKENPULSE_ENDPOINT") and not (whole or self.dropped or self.frames) and _posts.acquire(blocking=False):
            threading.Thread(target=self._post, args=(duration, cancelled, failure)).start()

    def _write(self, duration, cancelled, failure, whole):
        if not self.span.is_recording():
            return
        for key, value in {
            "gen_ai.request.stream": False if whole and self.own else None,
            "gen_ai.usage.input_tokens": self.usage.get("input_tokens"),
            "gen_ai.usage.output_tokens": self.usage.get("output_tokens"),
            AUDIO_TOKENS: self.usage.get("audio"),
            "tokenpulse.chunk.offsets": None if whole or failure and not self.offsets else self.offsets,
            "tokenpulse.chunk.tokens": self.tokens if any(n != 1 for n in self.tokens) else None,
            "tokenpulse.chunk.channels": self.channels if any(c != "content" for c in self.channels) else None,
            "tokenpulse.chunk.frames": self.frames or None,
            "tokenpulse.chunk.dropped": self.dropped or None,
            "tokenpulse.outcome": "cancelled" if cancelled else None,
            "error.type": failure,
        }.items():
            if value is not None:
                self.span.set_attribute(key, value)
        if self.own:
            if failure:
                self.own.set_status(trace.Status(trace.StatusCode.ERROR))
            self.own.end(end_time=self.start + duration)

    def _post(self, duration, cancelled, failure):
        """Posts the stream to the token_stream receiver of TOKENPULSE_ENDPOINT."""
        try:
            stream_id = str(uuid.uuid4())

            def line(event, after, **fields):
                return json.dumps({"event": event, "stream_id": stream_id, "time_unix_nano": str(self.start + after), **fields})

            resource = {"service.name": os.environ.get("OTEL_SERVICE_NAME", "unknown_service")}
            lines = [line("start", 0, vantage="client", resource=resource, attributes=self.attributes)]
            lines += [line("chunk", o * 1000, tokens=n, channel=c) for o, n, c in zip(self.offsets, self.tokens, self.channels)]
            outcome = {"cancelled": True} if cancelled else {"error": failure} if failure else {}
            audio = self.usage.pop("audio", None)
            lines.append(line("end", duration, usage=self.usage, attributes={AUDIO_TOKENS: audio} if audio else {}, **outcome))
            request = urllib.request.Request(
                os.environ["TOKENPULSE_ENDPOINT"] + "/v1/tokens", "\n".join(lines).encode(), {"Content-Type": "application/x-ndjson"}
            )
            urllib.request.urlopen(request, timeout=5).close()
        except Exception:  # the application works without the Collector
            pass
        finally:
            _posts.release()


class _Manager:
    """Watches the stream that a context manager returns when it is entered."""

    def __init__(self, manager, recorder):
        self._manager, self._recorder = manager, recorder

    def __getattr__(self, name):
        return getattr(self._manager, name)

    def __enter__(self):
        with self._recorder.making():
            stream = self._manager.__enter__()
        return self._recorder.watch(stream)

    def __exit__(self, *error):
        self._recorder.end(error[1], left=True)
        return self._manager.__exit__(*error)

    async def __aenter__(self):
        return await self._recorder._awaited(self._manager.__aenter__())

    async def __aexit__(self, *error):
        self._recorder.end(error[1], left=True)
        return await self._manager.__aexit__(*error)


def _get(item, *names):
    """Returns the first of the members of a dictionary or object that is there."""
    for name in names:
        value = item.get(name) if isinstance(item, dict) else getattr(item, name, None)
        if value is not None:
            return value
    return None


def _channel_of(part):
    """Returns the channel of the text or audio in an event or choice, or None if it has none."""
    kind, delta = _get(part, "type") or "", _get(part, "delta")
    if kind.endswith("audio.delta"):
        return "audio" if delta or _get(part, "audio") else None
    if kind in ("content_block_start", "response.output_item.added"):
        return "tool_call" if _get(_get(part, "content_block", "item"), "name") else None
    if kind and (not kind.endswith("delta") or re.match(r"(content|refusal|tool_calls|logprobs)\.", kind)):
        return None
    if isinstance(delta, str) and delta:
        return "reasoning" if "reasoning" in kind else "tool_call" if re.search("arguments|input|code", kind) else "content"
    if not delta:
        return "content" if _get(part, "text") else None
    for channel, names in (
        ("content", ("content", "refusal", "text")),
        ("reasoning", ("reasoning_content", "reasoning", "thinking")),
        ("tool_call", ("tool_calls", "function_call", "partial_json")),
    ):
        if any(_get(delta, name) for name in names):
            return channel
    spoken = _get(delta, "audio") or {}
    return "content" if _get(spoken, "transcript") else "audio" if _get(spoken, "data") else None


def _read_usage(item, into):
    usage = _get(item, "usage") or _get(_get(item, "message", "response") or {}, "usage")
    if usage is None:
        return
    inputs, outputs = _get(usage, "prompt_tokens", "input_tokens"), _get(usage, "completion_tokens", "output_tokens")
    cached = [_get(usage, name) or 0 for name in ("cache_read_input_tokens", "cache_creation_input_tokens")]  # not in Anthropic's input
    if isinstance(inputs, int):
        into["input_tokens"] = inputs + sum(cached)
    if isinstance(outputs, int):
        into["output_tokens"] = outputs
    audio = _get(_get(usage, "completion_tokens_details", "output_tokens_details") or {}, "audio_tokens")
    if isinstance(audio, int) and audio > 0:  # a part of the output
        into["audio"] = audio


def _safely(step, *arguments):
    """Runs a step that must not fail the application."""
    try:
        return step(*arguments)
    except Exception:
        return None
