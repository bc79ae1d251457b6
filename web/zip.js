// A zip archive without compression: the same files give the same bytes in every browser.

const TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

function crc32(bytes) {
  let value = ~0;
  for (const byte of bytes) value = (value >>> 8) ^ TABLE[(value ^ byte) & 255];
  return ~value >>> 0;
}

/** Little-endian numbers from [size in bytes, value] pairs. */
function fields(...pairs) {
  return Uint8Array.from(pairs.flatMap(([size, value]) => Array.from({ length: size }, (_, byte) => (value / 2 ** (8 * byte)) & 255)));
}

/** The archive of [path, text, mode] entries, such as ["project/train.py", "...", 0o644]. */
export function zip(entries) {
  const encoder = new TextEncoder();
  const [parts, directory] = [[], []];
  let offset = 0;
  for (const [path, text, mode] of entries) {
    const [name, bytes] = [encoder.encode(path), encoder.encode(text)];
    // Version 2.0, names in UTF-8, stored, 1 January 1980.
    const common = [[2, 20], [2, 0x800], [2, 0], [2, 0], [2, 0x21], [4, crc32(bytes)], [4, bytes.length], [4, bytes.length], [2, name.length], [2, 0]];
    const local = [fields([4, 0x04034b50], ...common), name, bytes];
    directory.push(fields([4, 0x02014b50], [2, 0x314], ...common, [2, 0], [2, 0], [2, 0], [4, (0o100000 | mode) * 65536], [4, offset]), name);
    parts.push(...local);
    offset += size(local);
  }
  const number = directory.length / 2;
  const end = fields([4, 0x06054b50], [2, 0], [2, 0], [2, number], [2, number], [4, size(directory)], [4, offset], [2, 0]);
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
}

const size = (parts) => parts.reduce((sum, part) => sum + part.length, 0);
