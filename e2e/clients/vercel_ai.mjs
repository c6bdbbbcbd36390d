import { createOpenAI } from '@ai-sdk/openai';
import { generateText, streamText } from 'ai';

import { makeCalls, prompt, wantsResponses } from './calls.mjs';
import { startTracing } from './tracing.mjs';

const provider = startTracing();
const openai = createOpenAI();
const request = (name) => ({
  model: wantsResponses(name) ? openai.responses(name) : openai.chat(name),
  prompt,
  experimental_telemetry: { isEnabled: true },
});

await makeCalls({
  stream: (name, abortSignal) => streamText({ ...request(name), abortSignal }).textStream,
  answer: (name) => generateText(request(name)),
});
await provider.shutdown();
