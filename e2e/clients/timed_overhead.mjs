// Prints the microseconds that `timed` of clients/js adds to each chunk of a stream.
import { timed } from 'tokenpulse';

const chunks = 10_000;

async function* stream() {
  for (let i = 0; i < chunks; i++) yield { choices: [{ index: 0, delta: { content: 'token' }, finish_reason: null }] };
}

async function measure(make) {
  const start = performance.now();
  for await (const _ of make());
  return ((performance.now() - start) * 1e3) / chunks;
}

const span = { isRecording: () => true, setAttribute() {}, setAttributes() {} };
let plain = Infinity;
let observed = Infinity;
for (let round = 0; round < 30; round++) {
  plain = Math.min(plain, await measure(stream));
  observed = Math.min(observed, await measure(() => timed(stream, { span })));
}
console.log((observed - plain).toFixed(2));
