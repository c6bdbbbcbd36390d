import { createRequire } from 'node:module';

import { registerInstrumentations } from '@opentelemetry/instrumentation';
import { OpenAIInstrumentation } from '@opentelemetry/instrumentation-openai';

import { makeOpenAICalls } from './openai.mjs';
import { startTracing } from './tracing.mjs';

const provider = startTracing();
registerInstrumentations({ instrumentations: [new OpenAIInstrumentation()] });
// The instrumentation patches require, not import.
const OpenAI = createRequire(import.meta.url)('openai');

await makeOpenAICalls(new OpenAI());
await provider.shutdown();
