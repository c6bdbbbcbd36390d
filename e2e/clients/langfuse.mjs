import { observeOpenAI } from '@langfuse/openai';
import { LangfuseSpanProcessor } from '@langfuse/otel';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import OpenAI from 'openai';

import { makeOpenAICalls } from './openai.mjs';
import { startTracing } from './tracing.mjs';

const provider = startTracing(
  new LangfuseSpanProcessor({ exporter: new OTLPTraceExporter(), mediaUploadEnabled: false }),
);

await makeOpenAICalls(observeOpenAI(new OpenAI()));
await provider.shutdown();
