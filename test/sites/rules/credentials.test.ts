import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { explainSshKeys } from '../../../src/sites/rules/credentials.ts';
import { requireTool } from '../../support/tools.ts';

const KEYGEN = 'ssh-keygen';

describe.skipIf(!requireTool(KEYGEN))('a key of ssh-keygen', () => {
  let directory = '';
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'sealift-ssh-'));
  });
  afterAll(() => {
    rmSync(directory, { recursive: true, force: true });
  });

  const create = (type: string, bits: string): string => {
    const path = join(directory, `${type}-${bits}`);
    const kind = bits === '' ? ['-t', type] : ['-t', type, '-b', bits];
    execFileSync(KEYGEN, ['-q', '-N', '', '-C', 'core@edge', ...kind, '-f', path]);
    return readFileSync(`${path}.pub`, 'utf8');
  };

  it.each([
    ['rsa', '2048', undefined],
    ['ecdsa', '256', undefined],
    ['ecdsa', '521', undefined],
    [
      'ed25519',
      '',
      'SSH key type ssh-ed25519 unavailable when FIPS is enabled. Please use rsa or ecdsa.',
    ],
  ])('of type %s %s is accepted, and with FIPS if that allows it', (type, bits, fips) => {
    const key = create(type, bits);
    expect(explainSshKeys(key, false)).toBeUndefined();
    expect(explainSshKeys(`no-pty,command="echo \\"a b\\"" ${key}`, false)).toBeUndefined();
    expect(explainSshKeys(key, true)).toBe(fips);
  });

  it('is refused if its middle is cut out', () => {
    const key = create('ecdsa', '384');
    expect(explainSshKeys(key.replace(/AAAA.{8}/, 'AAAA'), false)).toMatch(/^ssh: no key found: /);
  });
});

describe('a text that is not an SSH key is refused', () => {
  it.each([
    [
      'is a private key',
      '-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n',
    ],
    ['is a comment', '# a key will follow'],
    ['is a type alone', 'ssh-ed25519'],
    [
      'is of an unknown type',
      `ssh-quantum ${Buffer.from('\0\0\0\x0bssh-quantum').toString('base64')}`,
    ],
  ])('%s', (_, text) => {
    expect(explainSshKeys(text, false)).toMatch(/^ssh: no key found: /);
  });
});
