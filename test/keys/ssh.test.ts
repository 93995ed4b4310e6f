import { describe, expect, it } from 'vitest';
import { readSshKeys } from '../../src/keys/index.ts';

const BLOB = 'AAAAC3NzaC1lZDI1NTE5AAAAIISTX3LCNOY4BXACjLBvmWv0enV8idA15Muu90cuDhYA';
const KEY = `ssh-ed25519 ${BLOB}`;

describe('SSH keys are accepted', () => {
  it.each([
    ['after comment lines and empty lines', `# the team\n\n  # and one more\n${KEY}\n`],
    ['with line ends of Windows', `${KEY} core@edge\r\n`],
    ['with options in quotation marks', `no-pty,from="10.0.0.0/8, fd00::/8" ${KEY}`],
    ['with any letters in their comment', `${KEY} Jürgen\u00a0Müller "laptop"`],
  ])('%s', (_, text) => {
    expect(readSshKeys(text).problem).toBeUndefined();
    expect(readSshKeys(text).keys.map(({ algorithm }) => algorithm)).toEqual(['ssh-ed25519']);
  });
});

describe('an SSH key is refused', () => {
  it.each([
    ['if it is cut short', KEY.slice(0, -4), 'is cut short: its base64 text ends within the key'],
    ['if it is cut within base64', KEY.slice(0, -1), 'is cut short: its base64 text is incomplete'],
    ['with a no-break space', KEY.replace(' ', '\u00a0'), /U\+00A0, a no-break space/],
    ['in quotation marks', `"${KEY}"`, 'begins with a quotation mark; remove it'],
    ['in typographic quotation marks', `\u201c${KEY}\u201d`, /quotation mark/],
    ['with a byte order mark', `\ufeff${KEY}`, /byte order mark/],
    ['with a misspelt option', `no-ptty ${KEY}`, /unknown key type or option "no-ptty".*"no-pty"/],
    ['with an option without its quotation marks', `from=10.0.0.1 ${KEY}`, /needs quotation marks/],
    ['with another type than its blob', `ssh-rsa ${BLOB}`, /contains another key type/],
    ['if it is a certificate', `ssh-ed25519-cert-v01@openssh.com ${BLOB}`, /is a certificate/],
    ['if it is private', '-----BEGIN OPENSSH PRIVATE KEY-----', /is a private key/],
    ['if it is private, for PuTTY', 'PuTTY-User-Key-File-3: ssh-ed25519', /is a private key/],
    [
      'if it has the format of RFC 4716',
      '---- BEGIN SSH2 PUBLIC KEY ----\nAAAA',
      /is in the format of RFC 4716; give the line that PuTTYgen shows/,
    ],
    ['if there are only comments', '# a key will follow', 'has no key'],
    ['in the second line', `${KEY}\nssh-ed25519 AAAA`, /^line 2 is cut short/],
  ])('%s', (_, text, problem) => {
    expect(readSshKeys(text).problem).toMatch(problem);
  });
});
