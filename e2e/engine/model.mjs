// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Writes a model of llama.cpp (GGUF) with random weights. Its output is meaningless, but takes
// as long to compute as that of a trained model of this size.
import {randomFillSync} from 'node:crypto'
import {closeSync, openSync, writeSync} from 'node:fs'

const embedding = 1024
const forward = 2816
const heads = 16
const layers = 8

// Numbers of the format: types of values and of tensors, and the alignment of tensors.
const types = {u32: 4, i32: 5, f32: 6, string: 8, array: 9}
const halfFloats = 1
const floats = 0
const alignment = 32

const u32 = n => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(n)
  return bytes
}
const u64 = n => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(n))
  return bytes
}
const f32 = n => {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(n)
  return bytes
}
const string = text => Buffer.concat([u64(Buffer.byteLength(text)), Buffer.from(text)])
const encode = {u32, i32: u32, f32, string}

const entry = (key, type, value) => Buffer.concat([string(key), u32(types[type]), encode[type](value)])
const list = (key, type, values) =>
  Buffer.concat([string(key), u32(types.array), u32(types[type]), u64(values.length), ...values.map(encode[type])])
const aligned = size => Math.ceil(size / alignment) * alignment

// The first tokens are unknown, begin and end; the next are bytes.
export const firstWord = 3 + 256
const bytes = Array.from({length: 256}, (_, i) => `<0x${i.toString(16).toUpperCase().padStart(2, '0')}>`)
const words = Array.from({length: 4096 - firstWord}, (_, i) => `\u2581w${i}`)
const tokens = ['<unk>', '<s>', '</s>', ...bytes, ...words]
const tokenType = i => (i === 0 ? 2 : i < 3 ? 3 : i < firstWord ? 6 : 1)

const metadata = [
  entry('general.architecture', 'string', 'llama'),
  entry('general.name', 'string', 'random'),
  entry('general.file_type', 'u32', halfFloats),
  entry('llama.context_length', 'u32', 1024),
  entry('llama.embedding_length', 'u32', embedding),
  entry('llama.block_count', 'u32', layers),
  entry('llama.feed_forward_length', 'u32', forward),
  entry('llama.attention.head_count', 'u32', heads),
  entry('llama.attention.head_count_kv', 'u32', heads),
  entry('llama.rope.dimension_count', 'u32', embedding / heads),
  entry('llama.attention.layer_norm_rms_epsilon', 'f32', 1e-5),
  entry('tokenizer.ggml.model', 'string', 'llama'),
  list('tokenizer.ggml.tokens', 'string', tokens),
  list('tokenizer.ggml.scores', 'f32', tokens.map((_, i) => -i)),
  list('tokenizer.ggml.token_type', 'i32', tokens.map((_, i) => tokenType(i))),
  entry('tokenizer.ggml.bos_token_id', 'u32', 1),
  entry('tokenizer.ggml.eos_token_id', 'u32', 2),
]

const matrix = (name, columns, rows) => ({name, shape: [columns, rows], type: halfFloats, size: columns * rows * 2})
const norm = name => ({name, shape: [embedding], type: floats, size: embedding * 4})
const layer = i => [
  norm(`blk.${i}.attn_norm.weight`),
  ...['q', 'k', 'v', 'output'].map(part => matrix(`blk.${i}.attn_${part}.weight`, embedding, embedding)),
  norm(`blk.${i}.ffn_norm.weight`),
  matrix(`blk.${i}.ffn_gate.weight`, embedding, forward),
  matrix(`blk.${i}.ffn_up.weight`, embedding, forward),
  matrix(`blk.${i}.ffn_down.weight`, forward, embedding),
]
const tensors = [
  matrix('token_embd.weight', embedding, tokens.length),
  norm('output_norm.weight'),
  matrix('output.weight', embedding, tokens.length),
  ...Array.from({length: layers}, (_, i) => layer(i)).flat(),
]

// weights returns ones for a norm, and otherwise halves of random sign and mantissa, with a
// magnitude of 1/64 to 1/32.
function weights(tensor) {
  const values = Buffer.alloc(aligned(tensor.size))
  if (tensor.type === floats) {
    new Float32Array(values.buffer, values.byteOffset, tensor.size / 4).fill(1)
    return values
  }
  randomFillSync(values)
  const halves = new Uint16Array(values.buffer, values.byteOffset, tensor.size / 2)
  for (let i = 0; i < halves.length; i++) {
    halves[i] = (halves[i] & 0x83ff) | (9 << 10)
  }
  return values
}

export function writeModel(path) {
  let offset = 0
  const infos = tensors.map(({name, shape, type, size}) => {
    const info = Buffer.concat([string(name), u32(shape.length), ...shape.map(u64), u32(type), u64(offset)])
    offset += aligned(size)
    return info
  })
  const header = Buffer.concat([Buffer.from('GGUF'), u32(3), u64(tensors.length), u64(metadata.length), ...metadata, ...infos])
  const file = openSync(path, 'w')
  writeSync(file, Buffer.concat([header, Buffer.alloc(aligned(header.length) - header.length)]))
  for (const tensor of tensors) {
    writeSync(file, weights(tensor))
  }
  closeSync(file)
}
