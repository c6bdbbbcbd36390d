// A plain OpenTelemetry set-up that exports to OTEL_EXPORTER_OTLP_ENDPOINT.
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';

export function startTracing(processor = new BatchSpanProcessor(new OTLPTraceExporter())) {
  const provider = new NodeTracerProvider({ spanProcessors: [processor] });
  provider.register();
  return provider;
}
