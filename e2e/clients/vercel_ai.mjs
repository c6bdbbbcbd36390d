import { createOpenAI } from '@ai-sdk/openai';
import { generateText, streamText } from 'ai';

import { makeCalls, prompt, wantsResponses } from './calls.mjs';
import { startTracing } from './tracing.mjs';

const provider = startTracing();
const openai = createOpenAI();
const asking = (name) => ({
  model: wantsResponses(name) ? openai.responses(name) : openai.chat(name),
  prompt,
  experimental_telemetry: { isEnabled: true },
});

await makeCalls({
  stream: (name, abortSignal) => streamText({ ...asking(name), abortSignal }).textStream,
  answer: (name) => generateText(asking(name)),
});
await provider.shutdown();
