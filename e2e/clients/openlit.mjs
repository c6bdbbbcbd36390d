import { createRequire } from 'node:module';

import { trace } from '@opentelemetry/api';
import { Openlit } from 'openlit';

import { makeOpenAICalls } from './openai.mjs';

// Prices of its own, so that it fetches none.
Openlit.init({ pricingJson: {}, disableMetrics: true, disableEvents: true });
// The instrumentation sees what is required, not what is imported.
const OpenAI = createRequire(import.meta.url)('openai');

await makeOpenAICalls(new OpenAI());
await trace.getTracerProvider().getDelegate().shutdown();
