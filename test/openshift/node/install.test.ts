import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { drawSalt, hashCorePassword } from '../../../src/openshift/node/install.ts';
import { requireTool } from '../../support/tools.ts';

describe('hashCorePassword', () => {
  it('gives the hash in the example of its description', () => {
    expect(hashCorePassword('Hello world!', 'saltstring')).toBe(
      '$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1',
    );
  });

  it.skipIf(!requireTool('openssl'))('agrees with openssl for passwords of any length', () => {
    for (const size of [1, 7, 15, 16, 63, 64, 65, 127, 128, 200]) {
      const password = 'pässwörd-'.repeat(30).slice(0, size);
      const salt = drawSalt().slice(0, 1 + (size % 16));
      const theirs = execFileSync('openssl', ['passwd', '-6', '-salt', salt, '-stdin'], {
        input: `${password}\n`,
      });
      expect(hashCorePassword(password, salt)).toBe(theirs.toString().trim());
    }
  });

  it.each(['', 'has space', 'x'.repeat(17), 'a$b', 'ä'])('refuses the salt "%s"', (salt) => {
    expect(() => hashCorePassword('secret', salt)).toThrow(/^salt has \d+ characters, or others/);
  });
});

describe('drawSalt', () => {
  it('gives 16 characters that crypt accepts, different ones each time', () => {
    const salts = Array.from({ length: 1000 }, drawSalt);
    for (const salt of salts) expect(salt).toMatch(/^[./0-9A-Za-z]{16}$/);
    expect(new Set(salts).size).toBe(salts.length);
  });
});
