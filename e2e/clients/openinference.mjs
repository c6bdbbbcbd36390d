import { OpenAIInstrumentation } from '@arizeai/openinference-instrumentation-openai';
import OpenAI from 'openai';

import { makeOpenAICalls } from './openai.mjs';
import { startTracing } from './tracing.mjs';

const provider = startTracing();
const instrumentation = new OpenAIInstrumentation();
instrumentation.setTracerProvider(provider);
instrumentation.manuallyInstrument(OpenAI);

await makeOpenAICalls(new OpenAI());
await provider.shutdown();
