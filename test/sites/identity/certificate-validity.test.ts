import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readValidity } from '../../../src/sites/identity/certificates.ts';
import { issueSigner } from '../../../src/sites/identity/certificates.ts';
import { createKeySource } from '../../../src/sites/identity/keys.ts';
import { runs } from '../../support/properties.ts';

/** 1970 to 2120, on both sides of 2050, where dates get years of four digits. */
const SECONDS = fc.integer({ min: 0, max: 4_733_510_400 });

describe('the validity of a certificate', () => {
  it("equals the dates that OpenSSL's parser reads", async () => {
    const keys = createKeySource({ jobs: 1 });
    const { privateKey } = await keys.next();
    await keys.close();
    const signingKey = createPrivateKey(privateKey);
    const publicKey = createPublicKey(signingKey);
    await fc.assert(
      fc.asyncProperty(SECONDS, SECONDS, async (notBefore, notAfter) => {
        const terms = { publicKey, serial: Buffer.alloc(8, 1), notBefore, notAfter };
        const subject = { organizationalUnit: 'openshift', commonName: 'signer' };
        const pem = await issueSigner({ ...terms, subject }, signingKey);
        const { validFrom, validTo } = new X509Certificate(pem);
        expect(readValidity(pem)).toEqual({
          notBefore: Date.parse(validFrom),
          notAfter: Date.parse(validTo),
        });
        expect(readValidity(pem).notAfter).toBe(notAfter * 1000);
      }),
      { numRuns: runs(50) },
    );
  }, 30_000);
});
