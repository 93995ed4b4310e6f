import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { createHttp } from '../../../src/base/http/http.ts';
import { explainRoots } from '../../../src/keys/index.ts';
import { createCertsReader } from '../../../src/registry/client/transport.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'certs-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true });
});

it('a pipe among the certificates of a registry is refused', async () => {
  const certs = join(directory, 'registry.example:5000');
  mkdirSync(certs);
  execFileSync('mkfifo', [join(certs, 'ca.crt')]);
  const read = createCertsReader({ certsDirs: [directory] });
  await expect(read('registry.example:5000')).rejects.toMatchObject({ code: 'certs.unreadable' });
});

it('a certificate of a registry that is in DER is refused by name', async () => {
  const certs = join(directory, 'registry.example:5000');
  mkdirSync(certs);
  writeFileSync(join(certs, 'ca.crt'), Buffer.from('308201', 'hex'));
  const read = createCertsReader({ certsDirs: [directory], explainRoots });
  await expect(read('registry.example:5000')).rejects.toMatchObject({
    code: 'certs.malformed',
    message: expect.stringMatching(/ca\.crt: .*in DER; convert it to PEM/) as string,
  });
});

it('a certificate of a registry that is a dangling link is named in the error', async () => {
  const certs = join(directory, 'registry.example:5000');
  mkdirSync(certs);
  symlinkSync('nowhere', join(certs, 'ca.crt'));
  const read = createCertsReader({ certsDirs: [directory] });
  await expect(read('registry.example:5000')).rejects.toMatchObject({ code: 'certs.unreadable' });
});

it.each(['SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS'])(
  'a pipe and a missing file are refused in %s',
  async (name) => {
    const pipe = join(directory, 'pipe');
    execFileSync('mkfifo', [pipe]);
    for (const path of [pipe, join(directory, 'absent')]) {
      const http = createHttp({ redaction: createRedaction(), env: { [name]: path } });
      try {
        const asked = http.request({ url: new URL('https://127.0.0.1:9/') });
        await expect(asked).rejects.toMatchObject({ code: 'ca-bundle.unreadable' });
      } finally {
        await http.close();
      }
    }
  },
);
