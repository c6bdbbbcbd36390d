// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { timed } from './tokenpulse.mjs';

/** Returns a span that keeps its attributes. */
function newSpan() {
  const attributes = {};
  const setAttribute = (key, value) => void (attributes[key] = value);
  return { attributes, setAttribute, setAttributes: (all) => void Object.assign(attributes, all), isRecording: () => true };
}

/** Streams items through timed, and returns the attributes of the span. */
async function attributesOf(items, options) {
  const span = newSpan();
  async function* stream() {
    yield* items;
  }
  const passed = [];
  for await (const item of timed(stream, { span, ...options })) passed.push(item);
  assert.deepEqual(passed, items);
  return span.attributes;
}

const chat = (...deltas) => ({ choices: deltas.map((delta, index) => ({ index, delta })) });
const block = (delta) => ({ type: 'content_block_delta', index: 0, delta });

const channels = {
  'OpenAI chat': [
    [chat({ role: 'assistant', content: '' }), undefined], [chat({ reasoning_content: 'x' }), 'reasoning'], [chat({ content: 'x' }), 'content'],
    [chat({ tool_calls: [{ index: 0, function: { arguments: '{' } }] }), 'tool_call'], [chat({ refusal: 'x' }), 'content'], [chat({}), undefined],
    [{ choices: [], usage: { prompt_tokens: 17, completion_tokens: 12 } }, undefined],
  ],
  'audio of OpenAI': [
    [chat({ audio: { id: 'a', transcript: 'x' } }), 'content'], [chat({ audio: { id: 'a', data: 'AAAA' } }), 'audio'], [chat({ audio: { expires_at: 1 } }), undefined],
    [{ type: 'response.output_audio.delta', delta: 'AAAA' }, 'audio'], [{ type: 'response.audio.delta', delta: '' }, undefined],
    [{ type: 'response.output_audio_transcript.delta', delta: 'x' }, 'content'], [{ type: 'speech.audio.delta', audio: 'AAAA' }, 'audio'],
  ],
  'OpenAI completions': [[{ choices: [{ text: 'x' }] }, 'content'], [{ choices: [{ text: '', finish_reason: 'stop' }] }, undefined]],
  'Responses API': [
    [{ type: 'response.created', response: {} }, undefined],
    [{ type: 'response.output_item.added', item: { type: 'message' } }, undefined],
    [{ type: 'response.reasoning_summary_text.delta', delta: 'x' }, 'reasoning'],
    [{ type: 'response.output_text.delta', delta: 'x' }, 'content'],
    [{ type: 'response.output_item.added', item: { type: 'function_call', name: 'x' } }, 'tool_call'],
    [{ type: 'response.function_call_arguments.delta', delta: '{' }, 'tool_call'],
    [{ type: 'response.output_text.done', text: 'xx' }, undefined],
    [{ type: 'response.completed', response: { usage: { input_tokens: 17, output_tokens: 12 } } }, undefined],
  ],
  Anthropic: [
    [{ type: 'message_start', message: { usage: { input_tokens: 10, cache_read_input_tokens: 7, output_tokens: 1 } } }, undefined],
    [{ type: 'content_block_start', content_block: { type: 'text', text: '' } }, undefined],
    [block({ type: 'thinking_delta', thinking: 'x' }), 'reasoning'], [block({ type: 'signature_delta', signature: 'x' }), undefined],
    [block({ type: 'text_delta', text: 'x' }), 'content'], [{ type: 'content_block_start', content_block: { type: 'tool_use', name: 'x' } }, 'tool_call'],
    [block({ type: 'input_json_delta', partial_json: '{' }), 'tool_call'], [{ type: 'content_block_stop' }, undefined],
    [{ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 12 } }, undefined], [{ type: 'message_stop' }, undefined],
  ],
  'AI SDK': [
    [{ type: 'start' }, undefined], [{ type: 'reasoning-delta', id: '1', text: 'x' }, 'reasoning'], [{ type: 'text-start', id: '1' }, undefined],
    [{ type: 'text-delta', id: '1', text: 'x' }, 'content'], [{ type: 'tool-input-delta', id: '2', delta: '{' }, 'tool_call'],
    [{ type: 'finish', totalUsage: { inputTokens: 17, outputTokens: 12 } }, undefined],
  ],
  'plain texts': [['x', 'content'], ['', undefined]],
};

for (const [name, items] of Object.entries(channels)) {
  test(`channels of ${name}`, async () => {
    const attributes = await attributesOf(items.map(([item]) => item));
    const expected = items.map(([, channel]) => channel).filter(Boolean);
    assert.equal(attributes['tokenpulse.chunk.offsets'].length, expected.length);
    assert.deepEqual(attributes['tokenpulse.chunk.channels'], expected.some((c) => c !== 'content') ? expected : undefined);
    assert.equal(attributes['tokenpulse.chunk.tokens'], undefined);
    if (items.some(([item]) => item.usage ?? item.totalUsage ?? item.response?.usage)) {
      assert.equal(attributes['gen_ai.usage.output_tokens'], 12);
      assert.equal(attributes['gen_ai.usage.input_tokens'], 17);
    }
  });
}

test('audio tokens are reported apart', async () => {
  for (const details of [{ completion_tokens: 12, completion_tokens_details: { audio_tokens: 9 } }, { output_tokens: 12, output_tokens_details: { audio_tokens: 9 } }]) {
    const attributes = await attributesOf([chat({ content: 'x' }), { choices: [], usage: details }]);
    assert.equal(attributes['gen_ai.usage.output_tokens'], 12);
    assert.equal(attributes['gen_ai.usage.audio.output_tokens'], 9);
  }
});

test('each choice of a chunk has a token', async () => {
  const attributes = await attributesOf([chat({ content: 'x' }, { content: 'y' }), chat({ content: 'x' }, { content: '' })]);
  assert.deepEqual(attributes['tokenpulse.chunk.tokens'], [2, 1]);
});

test('chunks beyond the limit are counted', async () => {
  const attributes = await attributesOf(Array(10_003).fill('x'));
  assert.equal(attributes['tokenpulse.chunk.offsets'].length, 10_000);
  assert.equal(attributes['tokenpulse.chunk.dropped'], 3);
});

test('items of an unknown library are frames', async () => {
  const attributes = await attributesOf([{ candidates: [] }, { candidates: [{}] }]);
  assert.equal(attributes['tokenpulse.chunk.frames'], true);
  assert.equal(attributes['tokenpulse.chunk.offsets'].length, 2);
});

test('a stream without a token', async () => {
  assert.deepEqual((await attributesOf([chat({})]))['tokenpulse.chunk.offsets'], []);
});

test('a stream that was left after its finish reason is not cancelled', async () => {
  for (const [reason, outcome] of [['stop', undefined], [null, 'cancelled']]) {
    const span = newSpan();
    async function* stream() {
      yield { choices: [{ delta: { content: 'x' }, finish_reason: reason }] };
      yield chat({});
    }
    for await (const _ of timed(stream, { span })) break;
    assert.equal(span.attributes['tokenpulse.outcome'], outcome);
  }
});

test('errors of the application pass, without their text on the span', async () => {
  for (const [error, type] of [[new TypeError('secret'), 'TypeError'], [Object.assign(new Error('secret'), { status: 429 }), '429'], ['secret text', 'String']]) {
    const span = newSpan();
    await assert.rejects(timed(async () => { throw error; }, { span }), (thrown) => thrown === error);
    assert.throws(() => timed(() => { throw error; }, { span }), (thrown) => thrown === error);
    async function* stream() {
      yield 'x';
      throw error;
    }
    await assert.rejects(async () => { for await (const _ of timed(stream, { span })); }, (thrown) => thrown === error);
    assert.equal(span.attributes['error.type'], type);
    assert.doesNotMatch(JSON.stringify(span.attributes), /secret/);
  }
});

test('faults of the observer never reach the application', async () => {
  const fail = () => { throw new Error('of the SDK'); };
  const spans = [{}, { isRecording: fail }, { isRecording: () => true, setAttribute: fail, setAttributes() {} }, { setAttributes: fail }];
  const items = [null, 7, 'x', { get type() { return fail(); } }, { type: 5 }, { choices: 'x' }, { choices: [null] }, { usage: 'x' }];
  for (const span of spans) {
    async function* stream() {
      yield* items;
    }
    const passed = [];
    for await (const item of timed(stream, { span })) passed.push(item);
    assert.equal(passed.length, items.length);
  }
  const frozen = Object.freeze({ async *[Symbol.asyncIterator]() { yield 'x'; } });
  for await (const item of timed(() => frozen, { span: newSpan() })) assert.equal(item, 'x');
  for (const answer of [undefined, null, 7, 'text', { then: fail }]) assert.equal(timed(() => answer), answer);
});

test('nothing is posted unless TOKENPULSE_ENDPOINT is set', async (t) => {
  const fetched = t.mock.method(globalThis, 'fetch', async () => new Response(''));
  for (const [endpoint, posts] of [[undefined, 0], ['http://collector', 1]]) {
    if (endpoint) process.env.TOKENPULSE_ENDPOINT = endpoint;
    async function* stream() {
      yield 'secret';
    }
    for await (const _ of timed(stream));
    await new Promise((resolve) => setTimeout(resolve, 10));
    assert.equal(fetched.mock.callCount(), posts);
  }
  assert.equal(fetched.mock.calls[0].arguments[0], 'http://collector/v1/tokens');
  assert.doesNotMatch(fetched.mock.calls[0].arguments[1].body, /secret/);

  fetched.mock.mockImplementation(() => Promise.reject(new Error('unreachable')));
  for (let i = 0; i < 20; i++) for await (const _ of timed(async function* () { yield 'x'; }));
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(fetched.mock.callCount(), 1 + 16, 'at most 16 at a time');
});
