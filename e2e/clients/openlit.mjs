import { createRequire } from 'node:module';

import { trace } from '@opentelemetry/api';
import { Openlit } from 'openlit';

import { makeOpenAICalls } from './openai.mjs';

// Empty prices, so that it does not fetch a price list.
Openlit.init({ pricingJson: {}, disableMetrics: true, disableEvents: true });
// The instrumentation patches require, not import.
const OpenAI = createRequire(import.meta.url)('openai');

await makeOpenAICalls(new OpenAI());
await trace.getTracerProvider().getDelegate().shutdown();
