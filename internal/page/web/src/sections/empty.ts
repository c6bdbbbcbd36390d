// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import type {Endpoint} from '../api';
import {copyButton} from '../controls';
import {type Child, h} from '../dom';
import {docs} from '../terms';

const onAllAddresses = ['0.0.0.0', '[::]'];

/** What the page shows before the first request: how to make one, at the receivers of this Collector. */
export function emptyPage(endpoints: Endpoint[]): HTMLElement {
  const cards = endpoints.map(endpoint => (endpoint.receiver === 'token_tap' ? tap : stream)(reachable(endpoint)));
  return h('section', {class: 'empty', id: 'empty', 'aria-labelledby': 'empty-title'},
    h('h2', {id: 'empty-title'}, 'Waiting for the first request'),
    h('p', {class: 'muted'}, 'The Collector runs and has measured no request yet. This page fills by itself as soon as one ends.'),
    h('ol', {}, ...cards, spans(cards.length > 0)),
    h('p', {class: 'muted'}, 'Traffic flows, but nothing appears? ', doc('docs/operations.md#mistakes-in-pipelines', 'Find out why'), '.'));
}

/** Where this browser's machine reaches the receiver, if it listens on all addresses: at the host of this page. */
function reachable(endpoint: Endpoint): Endpoint {
  const url = new URL(endpoint.url);
  if (onAllAddresses.includes(url.hostname)) url.hostname = location.hostname;
  return {...endpoint, url: url.href};
}

const doc = (path: string, text: string): HTMLElement => h('a', {href: `${docs}/${path}`, target: '_blank', rel: 'noopener'}, text);

function card(title: string, command: string, ...text: Child[]): HTMLElement {
  return h('li', {class: 'card'}, h('div', {class: 'title'}, h('h3', {}, title)),
    h('div', {class: 'code'}, h('pre', {tabindex: 0, role: 'region', 'aria-label': `Command: ${title}`}, h('code', {}, command)), copyButton(() => command)), h('p', {class: 'caption'}, ...text));
}

const credentials = (auth: boolean): Child => auth && ' The receiver asks for credentials: add them to the command, such as a header.';

const stream = ({url, auth}: Endpoint): HTMLElement => card('Send a stream of three tokens to token_stream', `now=$(date +%s)
curl ${url} -H 'Content-Type: application/x-ndjson' --data-binary @- <<EOF
{"event":"start","stream_id":"demo-$now","time_unix_nano":"\${now}000000000","attributes":{"gen_ai.request.model":"my-model"}}
{"event":"chunk","stream_id":"demo-$now","time_unix_nano":"\${now}250000000"}
{"event":"chunk","stream_id":"demo-$now","time_unix_nano":"\${now}270000000"}
{"event":"chunk","stream_id":"demo-$now","time_unix_nano":"\${now}295000000"}
{"event":"end","stream_id":"demo-$now","time_unix_nano":"\${now}300000000"}
EOF`, doc('cmd/tokenpulse/README.md', 'tokenpulse'), ' sends more than one. ', doc('receiver/tokenstreamreceiver/README.md', 'What your service sends'), '.', credentials(auth));

const tap = ({url, auth}: Endpoint): HTMLElement => card('Send a request through token_tap', `curl -N ${url} -H 'Content-Type: application/json' \\
  -H "Authorization: Bearer $OPENAI_API_KEY" --data-binary @- <<EOF
{"model": "\${MODEL:?is not set: export one that the service has}", "stream": true, "stream_options": {"include_usage": true},
 "messages": [{"role": "user", "content": "Count from 1 to 20."}]}
EOF`, 'The base URL of an application is ', h('code', {}, url.replace('/chat/completions', '')), '. ', doc('receiver/tokentapreceiver/README.md', 'Other clients and APIs'), '.', credentials(auth));

const senders = (): Child[] => ['Spans of OpenTelemetry, OpenLLMetry, OpenInference, vLLM, LiteLLM and others work as they are. ', doc('docs/sources.md', 'What each of them gives'), '.'];

/** Spans come over another receiver. This one knows neither its address nor whether there is one, so it shows a command if nothing else can be meant. */
function spans(beside: boolean): HTMLElement {
  if (beside) return h('li', {class: 'card'}, h('div', {class: 'title'}, h('h3', {}, 'Or send the spans you have')), h('p', {}, 'An otlp receiver in front of token_latency takes them. ', ...senders()));
  return card('Send a span to otlp', `now=$(date +%s)
curl http://${location.hostname}:4318/v1/traces -H 'Content-Type: application/json' --data-binary @- <<EOF
{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "5b8efff798038103d269b6\${now}", "spanId": "eee19b\${now}",
  "name": "chat my-model", "kind": 3, "startTimeUnixNano": "\${now}000000000", "endTimeUnixNano": "\${now}296000000", "attributes": [
  {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
  {"key": "gen_ai.request.model", "value": {"stringValue": "my-model"}},
  {"key": "tokenpulse.chunk.offsets", "value": {"arrayValue": {"values": [{"intValue": 250000}, {"intValue": 270000}, {"intValue": 295000}]}}}]}]}]}]}
EOF`, 'Port 4318 is the default of otlp: take the endpoint of your receiver. ', ...senders());
}
