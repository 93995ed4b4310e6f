import { describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { credentialsFromPullSecret } from '../../../src/registry/client/credentials.ts';
import { parseReference as reference } from '../../../src/registry/reference.ts';

const redaction = createRedaction();

const { signal } = new AbortController();
const entry = (text: string) => ({ auth: Buffer.from(text).toString('base64') });

/* containers/image pkg/docker/config (findCredentialsInFile) and docker/cli (ConvertToHostname). */
describe('a key of an auth file', () => {
  it.each([
    ['a.example', 'a.example/x/y:v1', true],
    ['a.example/', 'a.example/x/y:v1', true],
    ['https://a.example', 'a.example/x/y:v1', true],
    ['http://a.example/', 'a.example/x/y:v1', true],
    ['https://a.example/v1/', 'a.example/x/y:v1', true],
    ['https://a.example/v2', 'a.example/x/y:v1', true],
    ['https://a.example/other/path', 'a.example/x/y:v1', true],
    ['a.example/x', 'a.example/x/y:v1', true],
    ['a.example/x/', 'a.example/x/y:v1', true],
    ['a.example/x/y', 'a.example/x/y:v1', true],
    ['a.example/z', 'a.example/x/y:v1', false],
    ['a.example:443', 'a.example/x/y:v1', false],
    ['a.example', 'a.example:443/x/y:v1', false],
    ['https://a.example:5000/v2/', 'a.example:5000/x/y:v1', true],
    ['ftp://a.example', 'a.example/x/y:v1', false],
    ['docker.io', 'docker.io/library/x:v1', true],
    ['index.docker.io', 'docker.io/library/x:v1', true],
    ['https://index.docker.io/v1/', 'docker.io/library/x:v1', true],
    ['registry-1.docker.io', 'docker.io/library/x:v1', true],
  ])('%s for %s: %s', async (key, image, isMatch) => {
    const store = credentialsFromPullSecret(JSON.stringify({ auths: { [key]: entry('u:p') } }), {
      name: 's',
      redaction,
    });
    const found = await store.find(reference(image), signal);
    expect(found !== undefined).toBe(isMatch);
  });

  it.each([
    ['a.example', 'https://a.example/v1/'],
    ['a.example/x', 'a.example'],
  ])('%s comes before %s', async (near, far) => {
    const auths = { [far]: entry('far:p'), [near]: entry('near:p') };
    for (const entries of [Object.entries(auths), Object.entries(auths).toReversed()]) {
      const json = JSON.stringify({ auths: Object.fromEntries(entries) });
      const store = credentialsFromPullSecret(json, { name: 's', redaction });
      expect(await store.find(reference('a.example/x/y:v1'), signal)).toMatchObject({
        username: 'near',
      });
    }
  });
});
