import { createOpenAI } from '@ai-sdk/openai';
import { Agent } from '@mastra/core/agent';
import { Mastra } from '@mastra/core/mastra';
import { RequestContext } from '@mastra/core/request-context';
import { Observability } from '@mastra/observability';
import { OtelExporter } from '@mastra/otel-exporter';

import { makeCalls, prompt, wantsResponses } from './calls.mjs';

const endpoint = `${process.env.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces`;
const exporter = new OtelExporter({
  provider: { custom: { endpoint, protocol: 'http/json' } },
  signals: { logs: false },
});
const openai = createOpenAI();
const agent = new Agent({
  id: 'agent',
  name: 'agent',
  instructions: 'Answer.',
  model: ({ requestContext }) => {
    const name = requestContext.get('model');
    return wantsResponses(name) ? openai.responses(name) : openai.chat(name);
  },
});
const mastra = new Mastra({
  agents: { agent },
  logger: false,
  observability: new Observability({
    configs: { otel: { serviceName: 'mastra', exporters: [exporter] } },
  }),
});

const context = (model) => ({ requestContext: new RequestContext([['model', model]]) });
await makeCalls({
  stream: async (model, abortSignal) =>
    (await agent.stream(prompt, { ...context(model), abortSignal })).textStream,
  answer: (model) => agent.generate(prompt, context(model)),
});
await mastra.shutdown();
