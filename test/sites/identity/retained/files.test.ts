import { hashSync } from 'bcryptjs';
import { expect, it } from 'vitest';
import {
  parseRetainedCertificate,
  proveRetainedPassword,
} from '../../../../src/sites/identity/retained/files.ts';

const FILES = { hash: 'tls/kubeadmin-password.hash', text: 'tls/kubeadmin-password' };
const TEXT = 'AbCdE-fGhIj-23456-kmnop';
const HASH = hashSync(TEXT, 4);

const prove = (bcrypt: string, text?: string): Promise<void> =>
  proveRetainedPassword({ bcrypt, text }, FILES);

it('a retained password must match its hash', async () => {
  await expect(prove(HASH, TEXT)).resolves.toBeUndefined();
  await expect(prove(HASH.replace('$2b$', '$2y$'), TEXT)).resolves.toBeUndefined();
  await expect(prove(HASH, `${TEXT}x`)).rejects.toMatchObject({
    code: 'retained.mismatch',
    message: 'tls/kubeadmin-password is not the password of tls/kubeadmin-password.hash',
  });
});

it('a retained hash is enough by itself, and an empty password counts as absent', async () => {
  await expect(prove(HASH)).resolves.toBeUndefined();
  await expect(prove(HASH, '')).resolves.toBeUndefined();
});

it('an empty hash, which makes the node delete its password, excludes a password', async () => {
  await expect(prove('')).resolves.toBeUndefined();
  await expect(prove('', TEXT)).rejects.toMatchObject({ code: 'retained.mismatch' });
});

it('a hash that would take hours to prove is accepted unproven', async () => {
  await expect(prove(HASH.replace('$04$', '$31$'), TEXT)).resolves.toBeUndefined();
});

it('problems with a retained password show neither the password nor its hash', async () => {
  for (const [hash, text] of [
    [`${HASH}\n`, TEXT],
    [HASH, `${TEXT}\n`],
    [HASH, 'secret'],
  ] as const) {
    const failure = await prove(hash, text).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Error);
    expect(JSON.stringify(failure) + String(failure)).not.toMatch(/AbCdE|secret|\$04/);
  }
});

it('a certificate must be the only block of its file, even if what follows is broken', () => {
  const block = '-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n';
  for (const text of [block + block, `${block}-----BEGIN CERTIFICATE-----\nMAA=\n`]) {
    expect(() => parseRetainedCertificate(text, 'tls/admin.crt')).toThrow(
      expect.objectContaining({ message: 'tls/admin.crt must be one PEM block of a CERTIFICATE' }),
    );
  }
});
