// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

import {copyButton} from '../controls';
import {h} from '../dom';
import {docs} from '../terms';

const demo = 'go run github.com/tokenpulse/tokenpulse/cmd/tokengen@latest generate --rate 8';

/** What the page shows before the first request: how to make one. */
export function emptyPage(endpoint: string): HTMLElement {
  const command = firstStream(endpoint);
  return h('section', {class: 'empty', id: 'empty', 'aria-labelledby': 'empty-title'},
    h('h2', {id: 'empty-title'}, 'Waiting for the first request'),
    h('p', {class: 'muted'}, 'The Collector runs and has measured no request yet. This page fills by itself as soon as one ends.'),
    h('ol', {},
      h('li', {class: 'card'}, h('div', {class: 'title'}, h('h3', {}, 'Send a stream of three tokens')),
        h('div', {class: 'code'}, h('pre', {tabindex: 0, role: 'region', 'aria-label': 'Command'}, h('code', {}, command)), copyButton(() => command))),
      h('li', {class: 'card'}, h('div', {class: 'title'}, h('h3', {}, 'Or see it with demo traffic')),
        h('div', {class: 'code'}, h('pre', {}, h('code', {}, demo)), copyButton(() => demo))),
      h('li', {class: 'card'}, h('div', {class: 'title'}, h('h3', {}, 'Or send the spans you have')),
        h('p', {}, 'Spans of OpenTelemetry, OpenLLMetry, OpenInference, vLLM, LiteLLM and others work as they are, over OTLP. ',
          h('a', {href: `${docs}/docs/sources.md`, target: '_blank', rel: 'noopener'}, 'What each of them gives'), '. Traffic flows, but nothing appears? ',
          h('a', {href: `${docs}/docs/operations.md`, target: '_blank', rel: 'noopener'}, 'Find out why'), '.'))));
}

const firstStream = (endpoint: string) => `now=$(date +%s)
curl ${endpoint} -H 'Content-Type: application/x-ndjson' --data-binary @- <<EOF
{"event":"start","stream_id":"demo-$now","time_unix_nano":"\${now}000000000","attributes":{"gen_ai.request.model":"my-model"}}
{"event":"chunk","stream_id":"demo-$now","time_unix_nano":"\${now}250000000"}
{"event":"chunk","stream_id":"demo-$now","time_unix_nano":"\${now}270000000"}
{"event":"chunk","stream_id":"demo-$now","time_unix_nano":"\${now}295000000"}
{"event":"end","stream_id":"demo-$now","time_unix_nano":"\${now}300000000"}
EOF`;
