// Makes the same calls with a client library, and prints what the library returned, one
// JSON line per call: node tap.mjs <library> <base URL> <call>...
//
// The calls are the models that are requested: the upstream answers each with another
// recording.
const prompt = 'Say something about tokens.';
const messages = [{ role: 'user', content: prompt }];

// Each library streams parts {text, tool, usage}, or returns a whole answer as one part.
const libraries = {
  async openai(base) {
    const { default: OpenAI } = await import('openai');
    const client = new OpenAI({ apiKey: 'secret', baseURL: `${base}/v1` });
    const parts = ({ choices, usage }) => {
      const part = choices[0]?.delta ?? choices[0]?.message;
      return { text: part?.content, tool: part?.tool_calls?.map((call) => call.function), usage };
    };
    return {
      async *stream(model, signal) {
        const stream = await client.chat.completions.create({ model, messages, stream: true }, { signal });
        for await (const chunk of stream) yield parts(chunk);
      },
      whole: async (model) => parts(await client.chat.completions.create({ model, messages })),
    };
  },

  async responses(base) {
    const { default: OpenAI } = await import('openai');
    const client = new OpenAI({ apiKey: 'secret', baseURL: `${base}/v1` });
    return {
      async *stream(model, signal) {
        const stream = await client.responses.create({ model, input: prompt, stream: true }, { signal });
        for await (const { type, delta, response } of stream) {
          yield { [type.includes('text') ? 'text' : 'tool']: delta, usage: response?.usage };
        }
      },
      async whole(model) {
        const { output, output_text, usage } = await client.responses.create({ model, input: prompt });
        return { text: output_text, tool: output, usage };
      },
    };
  },

  async anthropic(base) {
    const { default: Anthropic } = await import('@anthropic-ai/sdk');
    const client = new Anthropic({ apiKey: 'secret', baseURL: base });
    const request = (model) => ({ model, max_tokens: 100, messages });
    return {
      async *stream(model, signal) {
        const stream = client.messages.stream(request(model), { signal });
        for await (const { delta, content_block, usage } of stream) {
          yield { text: delta?.text, tool: delta?.partial_json ?? content_block?.name, usage };
        }
        yield { usage: (await stream.finalMessage()).usage };
      },
      async whole(model) {
        const { content, usage } = await client.messages.create(request(model));
        return { tool: content, usage };
      },
    };
  },

  async vercel(base) {
    const { createOpenAI } = await import('@ai-sdk/openai');
    const { generateText, streamText } = await import('ai');
    const provider = createOpenAI({ apiKey: 'secret', baseURL: `${base}/v1` });
    const request = (model) => ({ model: provider.chat(model), prompt, maxRetries: 0 });
    return {
      async *stream(model, abortSignal) {
        const { fullStream } = streamText({ ...request(model), abortSignal, onError() {} });
        for await (const part of fullStream) {
          if (part.type === 'error') throw part.error;
          if (part.type === 'abort') throw new DOMException('aborted', 'AbortError');
          yield { text: part.text, tool: part.toolName, usage: part.totalUsage };
        }
      },
      async whole(model) {
        const { text, usage } = await generateText(request(model));
        return { text, usage };
      },
    };
  },

  async langchain(base) {
    const { ChatOpenAI } = await import('@langchain/openai');
    const client = (model) =>
      new ChatOpenAI({ model, apiKey: 'secret', maxRetries: 0, configuration: { baseURL: `${base}/v1` } });
    const part = ({ content, tool_call_chunks, usage_metadata }) => ({
      text: content, tool: tool_call_chunks, usage: usage_metadata,
    });
    return {
      async *stream(model, signal) {
        for await (const chunk of await client(model).stream(prompt, { signal })) yield part(chunk);
      },
      whole: async (model) => part(await client(model).invoke(prompt)),
    };
  },

  async genai(base) {
    const { GoogleGenAI } = await import('@google/genai');
    const { models } = new GoogleGenAI({ apiKey: 'secret', httpOptions: { baseUrl: base } });
    const part = ({ candidates, usageMetadata }) => {
      const parts = candidates?.[0]?.content?.parts ?? [];
      return { text: parts.map((p) => p.text).join(''), tool: parts.map((p) => p.functionCall), usage: usageMetadata };
    };
    return {
      async *stream(model, abortSignal) {
        const stream = await models.generateContentStream({ model, contents: prompt, config: { abortSignal } });
        for await (const chunk of stream) yield part(chunk);
      },
      whole: async (model) => part(await models.generateContent({ model, contents: prompt })),
    };
  },

  async ollama(base) {
    const { Ollama } = await import('ollama');
    const client = new Ollama({ host: base });
    const part = ({ message, response, eval_count }) => ({ text: message?.content ?? response, usage: eval_count });
    return {
      async *stream(model, signal) {
        const stream = await client.chat({ model, messages, stream: true });
        signal.addEventListener('abort', () => stream.abort());
        for await (const line of stream) yield part(line);
      },
      whole: async (model) => part(await client.generate({ model, prompt })),
    };
  },

  async bedrock(base) {
    const sdk = await import('@aws-sdk/client-bedrock-runtime');
    const client = new sdk.BedrockRuntimeClient({
      region: 'us-east-1',
      endpoint: base,
      maxAttempts: 1,
      credentials: { accessKeyId: 'secret', secretAccessKey: 'secret' },
    });
    const input = (modelId) => ({ modelId, messages: [{ role: 'user', content: [{ text: prompt }] }] });
    return {
      async *stream(modelId, abortSignal) {
        if (modelId.startsWith('invoke')) {
          const command = new sdk.InvokeModelWithResponseStreamCommand({ modelId, body: JSON.stringify({ messages }) });
          for await (const { chunk } of (await client.send(command, { abortSignal })).body) {
            yield { text: new TextDecoder().decode(chunk.bytes) };
          }
          return;
        }
        const answer = await client.send(new sdk.ConverseStreamCommand(input(modelId)), { abortSignal });
        for await (const { contentBlockDelta, contentBlockStart, metadata } of answer.stream) {
          const { text, toolUse } = contentBlockDelta?.delta ?? {};
          yield { text, tool: toolUse?.input ?? contentBlockStart?.start?.toolUse?.name, usage: metadata?.usage };
        }
      },
      async whole(modelId) {
        const { output, usage } = await client.send(new sdk.ConverseCommand(input(modelId)));
        return { tool: output, usage };
      },
    };
  },
};

const [library, base, ...calls] = process.argv.slice(2);
const { stream, whole } = await libraries[library](base);

// make makes a call, and aborts one after the first part with text.
async function make(call) {
  if (call === 'whole') return { parts: [await whole(call)] };
  const controller = new AbortController();
  const parts = [];
  for await (const part of stream(call, controller.signal)) {
    parts.push(part);
    if (call === 'abort' && part.text) controller.abort();
  }
  return { parts };
}

for (const call of calls) {
  let result;
  try {
    result = await make(call);
  } catch (error) {
    result = { error: error.name, status: error.status ?? error.statusCode ?? error.status_code ?? error.$metadata?.httpStatusCode };
  }
  if (call === 'abort') result = {}; // how many parts it got depends on the time
  console.log(JSON.stringify({ call, ...result }));
}
process.exit(0);
