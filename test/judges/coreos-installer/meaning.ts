import { gunzipSync } from 'node:zlib';

/**
 * An Ignition config by its meaning: without the members that are null, which the judge adds to what it was
 * given, and with the texts that its resources unpack to. Parameters and scripts, which are not JSON, stay text.
 */
export function readMeaning(text: string): unknown {
  return readValue(text === '' ? null : parseOr(text));
}

const parseOr = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
};

function readValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(readValue);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value as Readonly<Record<string, unknown>>)
    .filter(([, member]) => member !== null)
    .map(([name, member]) => [
      name,
      name === 'source' ? readSource(String(member)) : readValue(member),
    ]);
  return Object.fromEntries(members.toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1)));
}

function readSource(source: string): unknown {
  const [, base64] = /^data:;base64,(.*)$/.exec(source) ?? [];
  return base64 === undefined
    ? source
    : readMeaning(gunzipSync(Buffer.from(base64, 'base64')).toString('utf8'));
}
