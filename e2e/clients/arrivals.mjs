// Records when this process gets each frame of a streamed answer, apart from the libraries that read it, and when the
// application reads each token. `timed` must see a token between the two. A busy machine delays both.
import { writeFileSync } from 'node:fs';

const got = {}; // milliseconds of Unix time, by the requested model
const read = {}; // likewise
const now = () => performance.timeOrigin + performance.now();
export const noteRead = (model) => (read[model] ??= []).push(now());

const fetched = globalThis.fetch;

globalThis.fetch = async (url, init) => {
  const response = await fetched(url, init);
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return response;
  const times = (got[JSON.parse(init.body).model] = []);
  const decoder = new TextDecoder();
  const note = new TransformStream({
    transform(bytes, controller) {
      const at = now();
      const frames = decoder.decode(bytes, { stream: true }).split('\n\n').length - 1;
      times.push(...Array(frames).fill(at));
      controller.enqueue(bytes);
    },
  });
  return new Response(response.body.pipeThrough(note), response);
};

process.on('exit', () => writeFileSync(process.env.ARRIVALS_FILE, JSON.stringify({ got, read })));
