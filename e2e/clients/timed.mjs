// Makes streamed calls through `timed` of clients/js: node timed.mjs otel|post. With `otel`, OpenTelemetry's SDK exports
// the spans; with `post`, no SDK is registered. Each call requests a different model.
import assert from 'node:assert/strict';

import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import { trace } from '@opentelemetry/api';
import { streamText } from 'ai';
import OpenAI from 'openai';
import { timed } from 'tokenpulse';

import { noteRead } from './arrivals.mjs';
import { prompt } from './calls.mjs';
import { startTracing } from './tracing.mjs';

const provider = process.argv[2] === 'otel' ? startTracing() : undefined;
const messages = [{ role: 'user', content: prompt }];
const openai = new OpenAI({ maxRetries: 0 });
// It makes spans of its own, with which each call would count twice.
const anthropic = new Anthropic({ apiKey: 'none', maxRetries: 0, openTelemetry: false });
const vercel = createOpenAI();

// Each makes a call whose result `timed` returns, and reads that result as an application does. It returns the text.
const libraries = {
  chat: {
    call: (model) => openai.chat.completions.create({ model, messages, stream: true, stream_options: { include_usage: true } }),
    read: async (promise, model) => join(await promise, (chunk) => chunk.choices[0]?.delta.content, model),
  },
  'chat-helper': {
    call: (model) => openai.chat.completions.stream({ model, messages, stream_options: { include_usage: true } }),
    read: async (stream, model) => (await stream.on('content', () => noteRead(model)).finalChatCompletion()).choices[0].message.content,
  },
  responses: {
    call: (model) => openai.responses.create({ model, input: prompt, stream: true }),
    read: async (promise, model) => join(await promise, (event) => event.type === 'response.output_text.delta' && event.delta, model),
  },
  'responses-helper': {
    call: (model) => openai.responses.stream({ model, input: prompt }),
    read: async (stream, model) => (await stream.on('response.output_text.delta', () => noteRead(model)).finalResponse()).output_text,
  },
  anthropic: {
    call: (model) => anthropic.messages.create({ model, max_tokens: 100, messages, stream: true }),
    read: async (promise, model) => join(await promise, (event) => event.delta?.text, model),
  },
  'anthropic-helper': {
    call: (model) => anthropic.messages.stream({ model, max_tokens: 100, messages }),
    read: (stream, model) => stream.on('text', () => noteRead(model)).finalText(),
  },
  vercel: {
    call: (model) => streamText({ model: vercel.chat(model), prompt, maxRetries: 0 }),
    read: ({ textStream }, model) => join(textStream, (text) => text, model),
  },
};

async function join(stream, text, model) {
  let all = '';
  for await (const part of stream) {
    const token = text(part);
    if (!token) continue;
    if (model) noteRead(model);
    all += token;
  }
  return all;
}

const attributes = (model) => ({ 'gen_ai.request.model': model, 'gen_ai.provider.name': 'test' });

async function make(library, model) {
  const { call, read } = libraries[library];
  let result;
  const passed = timed(() => (result = call(model)), { attributes: attributes(model) });
  assert.equal(passed, result, 'the result is the same object');
  assert.equal(await read(passed, model), process.env.ANSWER, library);
}

// The first calls load modules.
for (const library of Object.keys(libraries)) await make(library, `${library}.warmup`);
for (let i = 0; i < 3; i++) {
  for (const library of Object.keys(libraries)) await make(library, `${library}.${i}`);
  await Promise.all(['together-a', 'together-b'].map((name) => make('chat', `${name}.${i}`)));
}

// The application leaves a stream, tees one, and gets an error that `timed` passes on.
const create = (model, more) => openai.chat.completions.create({ model, messages, stream: true }, more);
let parts = 0;
for await (const _ of await timed(() => create('left-aborted'), { attributes: attributes('left-aborted') })) {
  if (++parts === 7) break; // the first has the role
}
const [one, other] = (await timed(() => create('teed'), { attributes: attributes('teed') })).tee();
const text = (chunk) => chunk.choices[0]?.delta.content;
assert.deepEqual(await Promise.all([join(one, text), join(other, text)]), [process.env.ANSWER, process.env.ANSWER]);
await assert.rejects(timed(() => openai.get('/missing'), { attributes: attributes('missing') }), { status: 404 });
await timed(() => openai.chat.completions.create({ model: 'whole', messages }), { attributes: attributes('whole') });

// The application's own span, which began before the call.
if (provider) {
  const start = Date.now();
  const span = trace.getTracer('application').startSpan('own', { startTime: start, attributes: attributes('own') });
  await new Promise((resolve) => setTimeout(resolve, 50));
  await join(await timed(() => create('own'), { span, start }), text);
  span.end();
}
await provider?.shutdown();
