// Calls of libraries that instrument OpenAI's client.
import { makeCalls, prompt, wantsResponses, wantsUsage } from './calls.mjs';

export async function makeOpenAICalls(client) {
  const messages = [{ role: 'user', content: prompt }];
  const request = (model, options, signal) =>
    wantsResponses(model)
      ? client.responses.create({ model, input: prompt, ...options }, { signal })
      : client.chat.completions.create({ model, messages, ...options }, { signal });
  const streamOptions = (model) =>
    wantsResponses(model)
      ? { stream: true }
      : { stream: true, stream_options: { include_usage: wantsUsage(model) } };
  await makeCalls({
    stream: (model, signal) => request(model, streamOptions(model), signal),
    answer: (model) => request(model),
    partsBeforeTokens: 1, // has only the role
  });
}
