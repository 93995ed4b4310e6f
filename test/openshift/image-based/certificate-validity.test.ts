import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { issueSigner } from '../../../src/openshift/image-based/certificates.ts';
import { readValidity } from '../../../src/openshift/image-based/certificate-validity.ts';
import { openssl } from '../../support/site-identity.ts';
import { requireTool } from '../../support/tools.ts';

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });

it('a certificate is valid from and to the second that it was made for, as Node says, too', async () => {
  const seconds = fc.integer({ min: 0, max: Date.UTC(9999, 0) / 1000 });
  const serial = fc.uint8Array({ minLength: 8, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(seconds, seconds, serial, async (notBefore, notAfter, serial) => {
      const subject = { commonName: 'x'.repeat(300) };
      const terms = { subject, publicKey, serial, notBefore, notAfter };
      const pem = await issueSigner(terms, privateKey);
      expect(readValidity(pem)).toEqual({
        notBefore: notBefore * 1000,
        notAfter: notAfter * 1000,
      });
      const { validFrom, validTo } = new X509Certificate(pem);
      expect([validFrom, validTo].map((date) => Date.parse(date) / 1000)).toEqual([
        notBefore,
        notAfter,
      ]);
    }),
    { numRuns: 50 },
  );
});

it.skipIf(!requireTool('openssl'))('a certificate of openssl is read, too', async () => {
  const args = ['-new', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const pem = await openssl(['req', ...args, '-keyout', '/dev/null', '-subj', '/CN=x']);
  const { validFrom, validTo } = new X509Certificate(pem);
  expect(readValidity(pem)).toEqual({
    notBefore: Date.parse(validFrom),
    notAfter: Date.parse(validTo),
  });
});

it.each(['', 'x', '-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----'])(
  '%j is no certificate',
  (text) => {
    expect(() => readValidity(text)).toThrow(RangeError);
  },
);
