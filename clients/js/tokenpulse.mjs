// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Reports when the tokens of a streamed answer arrive, in the attributes of docs/timeline-attributes.md.
// It sends no text of prompts or answers, and never fails or delays the application.

const otel = await import('@opentelemetry/api').catch(() => undefined);
const maxChunks = 10_000; // recorded of one stream; further ones are counted
const maxPosts = 16; // at a time; further streams are not posted
const audioTokens = 'gen_ai.usage.audio.output_tokens';
let posts = 0;

/**
 * Makes a call to a model and reports the times of its tokens. Returns what the call returns, unchanged: a stream of OpenAI
 * or Anthropic or a promise of one, a result of the AI SDK's streamText, another async iterable, or a whole answer.
 * @template T
 * @param {() => T} call makes the request
 * @param {object} [options]
 * @param {Record<string, string | number | boolean>} [options.attributes] of the span, such as gen_ai.request.model
 * @param {import('@opentelemetry/api').Span} [options.span] to write on, in place of a new one; the application ends it after the stream
 * @param {number} [options.start] of that span, in milliseconds of Unix time; default: now
 * @returns {T}
 */
export function timed(call, options = {}) {
  const recorder = safely(() => new Recorder(options));
  if (!recorder) return call();
  let result;
  try {
    result = recorder.context ? otel.context.with(recorder.context, call) : call();
  } catch (error) {
    recorder.end(error);
    throw error;
  }
  watch(result, recorder);
  return result;
}

class Recorder {
  offsets = []; // microseconds since the span's start
  tokens = [];
  channels = [];
  dropped = 0;
  frames = false; // items of an unknown library, with or without a token
  usage = {}; // input and output tokens
  complete = false; // the service said so

  constructor({ attributes, span, start = Date.now() }) {
    this.start = start;
    this.zero = performance.now() - (Date.now() - start);
    span?.setAttributes(attributes ?? {});
    this.span = span;
    this.attributes = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.stream': true, ...attributes };
    if (span || !otel) return;
    const name = [this.attributes['gen_ai.operation.name'], this.attributes['gen_ai.request.model']].filter(Boolean).join(' ');
    const own = otel.trace.getTracer('tokenpulse').startSpan(name, { kind: otel.SpanKind.CLIENT, startTime: start, attributes: this.attributes });
    if (!otel.isSpanContextValid(own.spanContext())) return; // no SDK is registered
    this.span = this.own = own;
    this.context = otel.trace.setSpan(otel.context.active(), own);
  }

  item(item) {
    const offset = Math.round((performance.now() - this.zero) * 1e3);
    safely(() => {
      readUsage(item, this.usage);
      const choices = item.choices ?? [typeof item === 'string' ? { text: item } : item];
      this.complete ||= /^(finish|message_stop|response\.(completed|incomplete))$/.test(item.type) || choices.some((c) => c.finish_reason);
      this.frames ||= typeof item !== 'string' && !item.choices && item.type === undefined;
      const channels = this.frames ? ['content'] : choices.map(channelOf).filter(Boolean);
      if (channels.length === 0) return;
      if (this.offsets.length === maxChunks) return void this.dropped++;
      this.offsets.push(offset);
      this.tokens.push(channels.length); // each choice has at least one
      this.channels.push(channels[0]);
    });
  }

  /** Ends the call, with its error if it has one. left: the application left the stream. */
  end(error, { left = false, whole = false } = {}) {
    const duration = performance.now() - this.zero;
    if (this.ended) return;
    this.ended = true;
    safely(() => {
      const cancelled = (left && !this.complete) || /Abort/.test(`${error?.name} ${error?.constructor?.name}`);
      const type = String(error?.status ?? error?.constructor?.name);
      const failure = error === undefined || cancelled ? undefined : /^[\w.:/-]{1,64}$/.test(type) ? type : '_OTHER';
      if (this.span) this.write(duration, cancelled, failure, whole);
      else if (!whole && this.dropped === 0 && !this.frames) this.post(duration, cancelled, failure);
    });
  }

  write(duration, cancelled, failure, whole) {
    if (!this.span.isRecording()) return;
    const set = (key, value, condition = value !== undefined) => condition && this.span.setAttribute(key, value);
    set('gen_ai.request.stream', false, whole && this.own !== undefined);
    set('gen_ai.usage.input_tokens', this.usage.input);
    set('gen_ai.usage.output_tokens', this.usage.output);
    set(audioTokens, this.usage.audio);
    set('tokenpulse.chunk.offsets', this.offsets, !whole && !(failure && this.offsets.length === 0));
    set('tokenpulse.chunk.tokens', this.tokens, this.tokens.some((n) => n !== 1));
    set('tokenpulse.chunk.channels', this.channels, this.channels.some((channel) => channel !== 'content'));
    set('tokenpulse.chunk.frames', true, this.frames);
    set('tokenpulse.chunk.dropped', this.dropped, this.dropped > 0);
    set('tokenpulse.outcome', 'cancelled', cancelled);
    set('error.type', failure);
    if (failure) this.own?.setStatus({ code: otel.SpanStatusCode.ERROR });
    this.own?.end(this.start + duration);
  }

  /** Posts the stream to a token_stream receiver, if TOKENPULSE_ENDPOINT is set. */
  post(duration, cancelled, error) {
    const { TOKENPULSE_ENDPOINT: endpoint, OTEL_SERVICE_NAME: service = 'unknown_service' } = globalThis.process?.env ?? {};
    if (!endpoint || posts === maxPosts) return;
    posts++;
    const stream_id = crypto.randomUUID();
    const line = (event, offset, fields) =>
      `${JSON.stringify({ event, stream_id, time_unix_nano: `${Math.round(this.start * 1e3 + offset)}000`, ...fields })}\n`;
    const send = async () => {
      const body = line('start', 0, { vantage: 'client', resource: { 'service.name': service }, attributes: this.attributes })
        + this.offsets.map((offset, i) => line('chunk', offset, { tokens: this.tokens[i], channel: this.channels[i] })).join('')
        + line('end', duration * 1e3, {
          usage: { input_tokens: this.usage.input, output_tokens: this.usage.output }, attributes: { [audioTokens]: this.usage.audio }, error, cancelled: cancelled || undefined,
        });
      const headers = { 'Content-Type': 'application/x-ndjson' };
      await (await fetch(`${endpoint}/v1/tokens`, { method: 'POST', headers, body, signal: AbortSignal.timeout(5_000) })).text();
    };
    setTimeout(() => send().catch(() => {}).finally(() => posts--), 0); // after the application has read the end
  }
}

/** Observes what a call returned. */
function watch(result, recorder) {
  const watched = safely(() => {
    if (typeof result?.then === 'function') {
      result.then((value) => watch(value, recorder), (error) => recorder.end(error));
    } else if (typeof result?.on === 'function' && typeof result.abort === 'function') { // .stream() of OpenAI and Anthropic
      for (const name of ['chunk', 'event', 'streamEvent']) result.on(name, (item) => recorder.item(item));
      result.on('end', () => recorder.end(result.errored ? new Error() : undefined, { left: result.aborted }));
    } else if (typeof result?.consumeStream === 'function') { // the AI SDK makes a branch of its stream for each reader
      readBranch(result.fullStream, recorder);
    } else if (typeof result?.[Symbol.asyncIterator] === 'function') {
      const key = typeof result.iterator === 'function' ? 'iterator' : Symbol.asyncIterator; // tee() of OpenAI uses iterator
      const iterate = result[key];
      const value = (...args) => watchIterator(iterate.apply(result, args), recorder, result.controller?.signal);
      Object.defineProperty(result, key, { value, configurable: true, writable: true });
    } else {
      safely(() => readUsage(result, recorder.usage));
      recorder.end(undefined, { whole: true });
    }
    return true;
  });
  if (!watched) recorder.end(undefined, { whole: true });
}

async function readBranch(stream, recorder) {
  let failure, left;
  try {
    for await (const part of stream) {
      recorder.item(part);
      if (part.type === 'error') failure = part.error;
      if (part.type === 'abort') left = true;
    }
  } catch (error) {
    failure = error;
  }
  recorder.end(failure, { left });
}

/** Observes an iterator through its own methods: it stays the same object, and its promises the same. */
function watchIterator(iterator, recorder, signal) {
  safely(() => {
    const { next, return: leave } = iterator;
    iterator.next = (...args) => {
      const step = next.apply(iterator, args);
      safely(() => step.then(
        ({ done, value }) => (done ? recorder.end(undefined, { left: signal?.aborted }) : recorder.item(value)),
        (error) => recorder.end(error),
      ));
      return step;
    };
    iterator.return = leave && ((...args) => {
      recorder.end(undefined, { left: true });
      return leave.apply(iterator, args);
    });
  });
  return iterator;
}

/** Returns the channel of the text or audio in an event or choice, or undefined if it has none. */
function channelOf({ type, delta, text, audio, content_block, item }) {
  if (/audio\.delta$/.test(type)) return (delta || audio) ? 'audio' : undefined;
  if (/^(content_block_start|response\.output_item\.added)$/.test(type)) return (content_block ?? item).name && 'tool_call';
  if (type !== undefined && !/delta$/.test(type)) return undefined; // of Anthropic, the Responses API and the AI SDK
  const d = typeof delta === 'object' ? delta : {};
  if (d.content || d.refusal || d.text || d.audio?.transcript) return 'content';
  if (d.reasoning_content || d.reasoning || d.thinking) return 'reasoning';
  if (d.tool_calls?.length || d.function_call || d.partial_json) return 'tool_call';
  if (d.audio?.data) return 'audio';
  if (typeof delta !== 'string' ? !text : !delta) return undefined;
  return /reasoning/.test(type) ? 'reasoning' : /arguments|input|code/.test(type) ? 'tool_call' : 'content';
}

function readUsage(item, into) {
  const usage = item?.usage ?? item?.totalUsage ?? item?.message?.usage ?? item?.response?.usage;
  if (!usage) return;
  const cached = (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0); // not in Anthropic's input_tokens
  into.input = usage.prompt_tokens ?? usage.inputTokens ?? (usage.input_tokens >= 0 ? usage.input_tokens + cached : into.input);
  into.audio = (usage.completion_tokens_details ?? usage.output_tokens_details)?.audio_tokens || into.audio; // a part of the output
  into.output = usage.completion_tokens ?? usage.outputTokens ?? usage.output_tokens ?? into.output;
}

/** Runs a step that must not fail the application. */
function safely(step) {
  try {
    return step();
  } catch {
    return undefined;
  }
}
