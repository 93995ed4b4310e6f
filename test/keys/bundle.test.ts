import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { explainRoots, hasRoots, readTrustBundle, warnOfBundle } from '../../src/keys/index.ts';
import { openRegistryAccess } from '../../src/stages/registry-access.ts';
import { checkConfig } from '../../src/config/load.ts';
import { inputOf } from '../support/config-input.ts';
import { requireTool } from '../support/tools.ts';

const OPENSSL = 'openssl';

it('a block of PEM of 2 MB is refused, and does not overflow the stack of a pattern', () => {
  const block = `-----BEGIN CERTIFICATE-----\n${'AAAA'.repeat(500_000)}\n-----END CERTIFICATE-----\n`;
  expect(readTrustBundle(block).problem).toMatch(/^block 1 /);
  expect(readTrustBundle(block.repeat(2)).problem).toMatch(/at most 2097152 of certificates/);
});

describe.skipIf(!requireTool(OPENSSL))('a trust bundle', () => {
  let directory = '';
  const read = (name: string): string => readFileSync(join(directory, name), 'utf8');
  const openssl = (line: string): void => {
    execFileSync(OPENSSL, line.split(' '), { cwd: directory, stdio: 'pipe' });
  };
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'keys-'));
    const pair = '-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes';
    openssl(`req -x509 ${pair} -keyout ca.key -out ca.pem -subj /CN=authority -days 36500`);
    openssl('req -new -key ca.key -subj /CN=leaf -out request.pem');
    const sign = 'x509 -req -in request.pem -CA ca.pem -CAkey ca.key -days 36500';
    openssl(`${sign} -set_serial 5 -out leaf.pem`);
    openssl(`${sign} -set_serial -5 -out negative.pem`);
    openssl('x509 -in ca.pem -outform der -out ca.der');
    openssl('x509 -in ca.pem -trustout -addtrust serverAuth -out trusted.pem');
  });
  afterAll(() => {
    rmSync(directory, { recursive: true, force: true });
  });

  it.each([
    ['comments between its blocks', '# one\n@\n# two\n@', undefined, true],
    ['blank lines at its end', '@\n\n', undefined, true],
    ['nothing', '', /has no block of PEM/, false],
    ['a byte order mark before a block', '\u{feff}@', /begins with a byte order mark/, false],
    ['a web page', '<html>login</html>', /is a web page/, false],
    ['a broken block after a good one', '@-----BEGIN CERTIFICATE-----\nAAAA\n', /./, true],
  ] as const)('is judged as a list of roots: %s', (...[, form, why, isUsed]) => {
    const bytes = Buffer.from(form.replaceAll('@', read('ca.pem')));
    const found = explainRoots(bytes);
    if (why === undefined) expect(found).toBeUndefined();
    else expect(found).toMatch(why);
    expect(hasRoots(bytes)).toBe(isUsed);
  });

  it.each(['SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS'])(
    'that %s names is refused without any root, and warned of with a broken block',
    async (name) => {
      const path = join(directory, 'roots.pem');
      const open = async (content: string, named = path): Promise<readonly string[]> => {
        writeFileSync(path, content);
        const warnings: string[] = [];
        const { http } = await openRegistryAccess({
          config: { build: { insecureRegistries: [], retryFor: 0 } },
          env: { [name]: named },
          redaction: createRedaction(),
          cwd: directory,
          emit: (event) => {
            if (event.type === 'warning') warnings.push(event.message);
          },
        });
        await http.close();
        return warnings;
      };
      await expect(open('<html>')).rejects.toMatchObject({ code: 'ca-bundle.malformed' });
      for (const wrong of [join(directory, 'absent'), directory, `${path}/below`]) {
        await expect(open('', wrong)).rejects.toMatchObject({
          code: 'ca-bundle.unreadable',
          hint: `correct or unset ${name}`,
        });
      }
      expect(await open(read('ca.pem'))).toEqual([]);
      expect(await open(`${read('ca.pem')}-----BEGIN CERTIFICATE-----\nAAAA\n`)).toEqual([
        expect.stringContaining(`${name} names ${path}`),
      ]);
    },
  );

  it('of connections is doubted if it has a leaf of version 1', async () => {
    const path = join(directory, 'doubted.pem');
    writeFileSync(path, `${read('ca.pem')}${read('leaf.pem')}\n`);
    const doubt =
      /doubted\.pem: certificate 2 \(CN=leaf\) is not marked as a certificate authority/;
    const text = `apiVersion: v1beta1\nocpRelease: {version: "4.21"}\nbuild: {caBundle: ${path}}\n`;
    const { notes } = checkConfig(inputOf(text, join(directory, 'a.yaml')), { env: {} });
    expect(notes).toEqual([
      expect.objectContaining({
        path: 'build.caBundle',
        problem: expect.stringMatching(doubt) as string,
      }),
    ]);
    const warnings: string[] = [];
    const { http } = await openRegistryAccess({
      config: { build: { insecureRegistries: [], retryFor: 0, caBundle: path } },
      env: {},
      redaction: createRedaction(),
      cwd: directory,
      emit: (event) => {
        if (event.type === 'warning') warnings.push(event.message);
      },
    });
    await http.close();
    expect(warnings).toEqual([expect.stringMatching(doubt) as string]);
  });

  it('has certificates, with comments between them', () => {
    const { certificates, problem } = readTrustBundle(
      `# one\n${read('ca.pem')}# two\n${read('ca.pem')}`,
    );
    expect(problem).toBeUndefined();
    expect(certificates.map(({ subject }) => subject)).toEqual(['CN=authority', 'CN=authority']);
  });

  it.each([
    [
      'a private key',
      'ca.key',
      /^block 2 is a private key.* \(found -----BEGIN PRIVATE KEY-----\)$/,
    ],
    ['a request', 'request.pem', /^block 2 is a certificate request.*BEGIN CERTIFICATE REQUEST/],
    ['a trusted certificate', 'trusted.pem', /^block 2 is in OpenSSL's own form/],
    ['a negative serial number', 'negative.pem', /^block 2 is not a certificate: x509: negative/],
  ])('may not have %s behind the first', (_, name, problem) => {
    expect(readTrustBundle(read('ca.pem') + read(name)).problem).toMatch(problem);
  });

  it('may not end in text, nor hide a broken block', () => {
    const good = read('ca.pem');
    expect(readTrustBundle(`${good}more`).problem).toMatch(/text after the last block/);
    const broken = good.replace('-----END CERTIFICATE-----', '');
    expect(readTrustBundle(broken + good).problem).toMatch(/block 1 is broken/);
    const longer = good.replace(/\n-----END/, 'AAAA\n-----END');
    expect(readTrustBundle(longer + good).problem).toMatch(/block 1 is/);
  });

  it('may be neither a DER file nor a web page', () => {
    expect(readTrustBundle(readFileSync(join(directory, 'ca.der'))).problem).toMatch(/is in DER/);
    expect(readTrustBundle('<!DOCTYPE html><html></html>').problem).toMatch(/is a web page/);
  });

  it('gives a warning for a certificate that is not an authority, and for one that expires', () => {
    const bundle = readTrustBundle(read('ca.pem') + read('leaf.pem'));
    expect(warnOfBundle(bundle)).toEqual([
      expect.stringMatching(/^certificate 2 \(CN=leaf\) is not marked as a certificate authority/),
    ]);
    const end = bundle.certificates[0]?.notAfter ?? 0;
    expect(warnOfBundle(bundle, end + 1)[0]).toMatch(/^certificate 1 \(CN=authority\) expired at /);
  });
});
