// Every library makes the same calls. Each call requests a different model, so that the
// test can match the server's requests with the spans.

export const prompt = 'Say something about tokens.';

// The first calls load modules, so the test does not compare their times with the
// server's.
const warmups = ['warmup', 'warmup-responses'];

const streams = [
  '1',
  '2',
  'held', // the server delays its headers until the first frame
  'unmetered', // does not request usage, if the library leaves that to its user
  // Calls of the Responses API.
  '1-responses',
  '2-responses',
  '3-responses',
];

const answers = ['whole', 'whole-responses'];

// makeCalls makes one call after the other. `stream` requests a stream and returns an
// iterable of its parts; `answer` requests a whole answer. `partsBeforeTokens` is the
// number of parts without a token at the start of a stream.
export async function makeCalls({ stream, answer, partsBeforeTokens = 0 }) {
  const model = (name) => `${process.env.MODEL_PREFIX}${name}`;
  for (const name of [...warmups, ...streams]) {
    for await (const _ of await stream(model(name)));
  }
  for (const name of answers) await answer(model(name));
  await abort((signal) => stream(model('aborted'), signal), partsBeforeTokens + 6);
}

// abort cancels a stream after some parts. The server sends no more before that. Some
// libraries throw an error then.
async function abort(stream, after) {
  const controller = new AbortController();
  let parts = 0;
  try {
    for await (const _ of await stream(controller.signal)) {
      if (++parts === after) controller.abort();
    }
  } catch {
    return;
  }
}

export const wantsResponses = (model) => model.endsWith('responses');
export const wantsUsage = (model) => !model.endsWith('unmetered');
