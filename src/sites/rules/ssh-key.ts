/** How many strings follow the algorithm's name in a public key (RFC 4253 6.6, RFC 5656, RFC 8709). */
const FIELDS: Readonly<Record<string, number>> = {
  'ssh-rsa': 2,
  'ssh-dss': 4,
  'ecdsa-sha2-nistp256': 2,
  'ecdsa-sha2-nistp384': 2,
  'ecdsa-sha2-nistp521': 2,
  'ssh-ed25519': 1,
  'sk-ecdsa-sha2-nistp256@openssh.com': 3,
  'sk-ssh-ed25519@openssh.com': 2,
};

const FIPS = /^(?:ssh-rsa|ecdsa-sha2-nistp(?:256|384|521))$/;

/** Every line must be an entry of authorized_keys; a FIPS cluster takes RSA and ECDSA only. */
export function explainSshKeys(text: string, fips: boolean): string | undefined {
  const lines = text.split('\n').map((line) => line.trim());
  for (const line of lines.filter((each) => each !== '')) {
    const algorithm = parseEntry(line);
    if (algorithm === undefined) return 'ssh: no key found';
    if (fips && !FIPS.test(algorithm)) {
      return `SSH key type ${algorithm} unavailable when FIPS is enabled. Please use rsa or ecdsa.`;
    }
  }
  return undefined;
}

/** `[options] type base64 [comment]`: the algorithm that the key itself names. */
function parseEntry(line: string): string | undefined {
  if (line.startsWith('#')) return undefined;
  return readKey(line) ?? readKey(skipWord(line));
}

const readKey = (entry: string): string | undefined => {
  const [, encoded = ''] = entry.split(/[ \t]+/);
  const canonical = /^[A-Za-z0-9+/]+={0,2}$/.test(encoded);
  return canonical ? readAlgorithm(Buffer.from(encoded, 'base64')) : undefined;
};

/** Options end at the first blank outside of quotes. */
function skipWord(line: string): string {
  let quoted = false;
  for (let at = 0; at < line.length; at++) {
    if (line[at] === '"' && line[at - 1] !== '\\') quoted = !quoted;
    if (!quoted && /[ \t]/.test(line.charAt(at))) return line.slice(at).trimStart();
  }
  return '';
}

/** RFC 4253 6.6: strings with their length in front, the algorithm first, and nothing behind. */
function readAlgorithm(blob: Buffer): string | undefined {
  const strings: Buffer[] = [];
  let at = 0;
  while (at + 4 <= blob.length) {
    const end = at + 4 + blob.readUInt32BE(at);
    if (end > blob.length) return undefined;
    strings.push(blob.subarray(at + 4, end));
    at = end;
  }
  const name = strings[0]?.toString('latin1') ?? '';
  if (at !== blob.length) return undefined;
  if (name.endsWith('-cert-v01@openssh.com')) return strings.length > 5 ? name : undefined;
  return Object.hasOwn(FIELDS, name) && strings.length - 1 === FIELDS[name] ? name : undefined;
}
