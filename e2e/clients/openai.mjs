// The calls of a library that instruments OpenAI's own client.
import { makeCalls, prompt, wantsResponses, wantsUsage } from './calls.mjs';

export async function makeOpenAICalls(client) {
  const messages = [{ role: 'user', content: prompt }];
  const ask = (model, how, signal) =>
    wantsResponses(model)
      ? client.responses.create({ model, input: prompt, ...how }, { signal })
      : client.chat.completions.create({ model, messages, ...how }, { signal });
  const asStream = (model) =>
    wantsResponses(model)
      ? { stream: true }
      : { stream: true, stream_options: { include_usage: wantsUsage(model) } };
  await makeCalls({
    stream: (model, signal) => ask(model, asStream(model), signal),
    answer: (model) => ask(model),
    partsBeforeTokens: 1, // the role
  });
}
