// The compiled device as a page runs it: one import, texts in memory.

/** Makes describe and answer of the module's bytes; `random(n)` are n random bytes. */
export async function load(bytes, random) {
  let memory;
  const env = { random: (place, length) => new Uint8Array(memory.buffer, place, length).set(random(length)) };
  const { instance } = await WebAssembly.instantiate(bytes, { env });
  const { alloc, release, describe, answer } = instance.exports;
  memory = instance.exports.memory;
  const call = (work) => (source) => {
    const input = new TextEncoder().encode(source);
    const place = alloc(input.length);
    new Uint8Array(memory.buffer, place, input.length).set(input);
    const result = work(place, input.length);
    release(place, input.length);
    const length = new DataView(memory.buffer).getUint32(result, true);
    const text = new TextDecoder().decode(new Uint8Array(memory.buffer, result + 4, length));
    release(result, length + 4);
    return text;
  };
  return { describe: call(describe), answer: call(answer), memory };
}
