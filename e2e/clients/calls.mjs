// Every library makes the same calls. Each call asks for another model, so that
// the test can tell which request of the server and which span belong together.

export const prompt = 'Say something about tokens.';

// The library's first calls load what it needs. They are read like all others, but
// the test does not hold their times against the server's.
const warmups = ['warmup', 'warmup-responses'];

const streams = [
  '1',
  '2',
  'held', // the server holds its headers until the first frame
  'unmetered', // without asking for usage, where the library leaves that to its user
  // Asked through the Responses API.
  '1-responses',
  '2-responses',
  '3-responses',
];

const answers = ['whole', 'whole-responses'];

// makeCalls makes one call after the other. `stream` starts a streaming answer and
// returns an iterable of its parts, of which so many come before those with a token;
// `answer` asks for a whole answer.
export async function makeCalls({ stream, answer, partsBeforeTokens = 0 }) {
  const model = (name) => `${process.env.MODEL_PREFIX}${name}`;
  for (const name of [...warmups, ...streams]) {
    for await (const _ of await stream(model(name)));
  }
  for (const name of answers) await answer(model(name));
  await abort((signal) => stream(model('aborted'), signal), partsBeforeTokens + 6);
}

// abort goes away in the middle of an answer, before the server's longest pause.
// Libraries differ in whether that is an error to their user.
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
