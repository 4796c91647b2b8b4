// Answers cases, JSON on standard input, by a device: `run.mjs plain` or `run.mjs module FILE.wasm`. Each case has a work
// ("describe" or "answer"), an input and random bytes; the results go to standard output, with the number of bytes drawn.
// `run.mjs --speed FILE.wasm CASES.json` prints how long a signed question takes.

import { readFileSync } from "node:fs";
import * as plain from "./device.mjs";
import { load } from "./wasm.mjs";

/** Bytes from hexadecimal digits, as they are asked for. */
class Source {
  constructor(digits) {
    this.bytes = Buffer.from(digits, "hex");
    this.drawn = 0;
  }

  take(count) {
    this.drawn += count;
    if (this.drawn > this.bytes.length) throw new Error("more random bytes than there are");
    return this.bytes.subarray(this.drawn - count, this.drawn);
  }
}

let source;

async function deviceOf(kind, file) {
  if (kind === "plain") {
    const random = (count) => source.take(count);
    return { describe: plain.describe, answer: (input) => plain.answer(input, random) };
  }
  return load(readFileSync(file), (count) => source.take(count));
}

async function answerAll(kind, file) {
  const [device, results] = [await deviceOf(kind, file), []];
  for (const { work, input, random } of JSON.parse(readFileSync(0, "utf8"))) {
    source = new Source(random);
    const result = await device[work](input);
    results.push({ result: typeof result === "string" ? JSON.parse(result) : result, drawn: source.drawn });
  }
  process.stdout.write(JSON.stringify(results));
}

async function measure(file, cases) {
  const stored = JSON.parse(readFileSync(cases, "utf8")).find((stored) => stored.name === "a stage with a form");
  const input = JSON.stringify({ ...stored.invitation, ...stored.reply });
  const random = (count) => crypto.getRandomValues(new Uint8Array(count));
  const device = await load(readFileSync(file), random);
  const times = [];
  for (let i = 0; i < 200; i++) {
    const start = performance.now();
    const result = JSON.parse(device.answer(input));
    if (result.error !== undefined) throw new Error(result.error.rule);
    times.push(performance.now() - start);
  }
  times.sort((a, b) => a - b);
  console.log(`${times[100].toFixed(2)} ms for a signed question of ${input.length} bytes, median of 200`);
  console.log(`${device.memory.buffer.byteLength >> 10} KiB of memory`);
}

const [kind, file, cases] = process.argv.slice(2);
await (kind === "--speed" ? measure(file, cases) : answerAll(kind, file));
