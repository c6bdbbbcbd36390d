# Makes streamed calls through `timed` of clients/python, with the standard library alone: python3 timed.py post|overhead.
# Streams go to TOKENPULSE_ENDPOINT. With `overhead`, it prints what `timed` costs.
# Each call requests a different model.
import asyncio
import json
import os
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "clients", "python"))
from tokenpulse import timed

# When this process got each frame, and when the application read each token, in milliseconds of Unix time, by the requested
# model. `timed` must see a token between the two. A busy machine delays both.
got, tokens_read = {}, {}


def note(times, model):
    times.setdefault(model, []).append(time.time() * 1e3)


def chunks(model):
    """Yields the chunks of a stream of OpenAI's chat API."""
    body = {"model": model, "stream": True, "stream_options": {"include_usage": True}}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode())) as answer:
        for line in answer:
            if line.startswith(b"data: "):
                note(got, model)
            if line.startswith(b"data: {"):
                yield json.loads(line[len("data: ") :])


async def async_chunks(model):
    stream, done = chunks(model), object()
    while True:
        chunk = await asyncio.get_running_loop().run_in_executor(None, next, stream, done)
        if chunk is done:
            return
        yield chunk


def text_of(chunk, model):
    text = "".join(choice["delta"].get("content", "") for choice in chunk["choices"])
    if text:
        note(tokens_read, model)
    return text


def read(model):
    attributes = {"gen_ai.request.model": model, "gen_ai.provider.name": "test"}
    text = "".join(text_of(chunk, model) for chunk in timed(lambda: chunks(model), attributes))
    assert text == os.environ["ANSWER"], text


async def read_async(model):
    text = ""
    async for chunk in timed(lambda: async_chunks(model), {"gen_ai.request.model": model}):
        text += text_of(chunk, model)
    assert text == os.environ["ANSWER"], text


def overhead():
    """Prints the microseconds that timed adds to each chunk of a stream."""
    items = [{"choices": [{"index": 0, "delta": {"content": "token"}, "finish_reason": None}]}] * 10_000

    def measure(stream):
        start = time.perf_counter()
        for _ in stream:
            pass
        return (time.perf_counter() - start) * 1e6 / len(items)

    plain = min(measure(iter(items)) for _ in range(10))
    print(round(min(measure(timed(lambda: iter(items))) for _ in range(10)) - plain, 2))


if sys.argv[1] == "overhead":
    overhead()
    sys.exit()
read("python.warmup")
for i in range(3):
    read(f"python.{i}")
    asyncio.run(read_async(f"python-async.{i}"))
    threads = [threading.Thread(target=read, args=(f"{name}.{i}",)) for name in ("together-a", "together-b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
left = timed(lambda: chunks("left-aborted"), {"gen_ai.request.model": "left-aborted"})
for _ in range(7):  # the first has the role
    next(left)
left.close()
with open(os.environ["ARRIVALS_FILE"], "w", encoding="utf-8") as file:
    json.dump({"got": got, "read": tokens_read}, file)
