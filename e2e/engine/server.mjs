// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Serves llama.cpp over HTTP. The engine is real. The server is a small one: it answers
// POST /completion as llama.cpp's own server does, with its timings, which are wall-clock
// times of the engine's process. The last event also has what llama.cpp itself counts as
// its time of computing.
import {createServer} from 'node:http'
import {getLlama} from 'node-llama-cpp'
import {firstWord, writeModel} from './model.mjs'

const counted = {}
const logger = (_, message) => {
  for (const [, name, ms] of message.matchAll(/(prompt eval|eval) time =\s*([\d.]+) ms/g)) {
    counted[name] ??= Number(ms)
  }
}

const modelPath = process.argv[2]
writeModel(modelPath)
const llama = await getLlama({build: 'never', gpu: false, logger, logLevel: 'info'})
const model = await llama.loadModel({modelPath})
const context = await model.createContext({contextSize: 1024, performanceTracking: true, threads: 1})
const sequence = context.getSequence()

async function complete(request, response) {
  const start = performance.now()
  let body = ''
  for await (const piece of request) {
    body += piece
  }
  const {n_predict: limit, prompt_tokens: promptLength} = JSON.parse(body)
  console.log('computing')
  const prompt = Array.from({length: promptLength}, (_, i) => firstWord + i)
  const send = event => response.write(`data: ${JSON.stringify(event)}\n\n`)
  response.writeHead(200, {'Content-Type': 'text/event-stream'})
  let first, last
  let predicted = 0
  for await (const token of sequence.evaluate(prompt, {temperature: 0, yieldEogToken: true})) {
    last = performance.now()
    first ??= last
    predicted++
    send({index: 0, content: model.detokenize([token]) || ' ', tokens: [token], stop: false, id_slot: 0, tokens_predicted: predicted, tokens_evaluated: promptLength})
    if (predicted === limit) {
      break
    }
  }
  delete counted['prompt eval']
  delete counted.eval
  await context.printTimings()
  await sequence.clearHistory()
  send({
    index: 0, content: '', tokens: [], stop: true, id_slot: 0, model: 'random', tokens_predicted: predicted, tokens_evaluated: promptLength, stop_type: 'limit',
    timings: {prompt_n: promptLength, prompt_ms: first - start, predicted_n: predicted, predicted_ms: last - first},
    counted: {prompt_ms: counted['prompt eval'], predicted_ms: counted.eval},
  })
  response.end()
}

const server = createServer((request, response) => complete(request, response).catch(error => {
  console.error(error)
  response.destroy()
}))
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`))
