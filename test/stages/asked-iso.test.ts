import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { readLiveIsoRequest } from '../../src/cli/ask-appliance.ts';
import type { CliHost } from '../../src/cli/host.ts';
import type { BuildTools } from '../../src/stages/tools.ts';
import { describeAsked } from '../../src/stages/resolved/describe-asked.ts';
import { fakeDigest } from '../support/sparse-medium.ts';

const tools = {
  ...{ program: fakeDigest('program'), registriesConf: [] },
  resolved: { sealKey: Buffer.alloc(32) },
} as unknown as BuildTools;

describe('the digest of a request for an ISO', () => {
  let home: string;
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'sealift-asked-'));
  });
  afterEach(() => rm(home, { recursive: true }));
  const requestOf = (inputs: readonly string[]) => ({
    ...{ output: join(home, 'x.iso'), workDir: join(home, 'work'), force: false, inputs },
    configuration: join(home, 'appliance-config.yaml'),
    signatures: { allowUnsigned: false },
    access: { build: { insecureRegistries: [] } },
    confidential: [],
    held: { lock: { path: join(home, 'lock'), isLocked: false } },
  });

  it('is unknown if a folder has a link to another folder', async () => {
    const folder = join(home, 'mirror');
    await mkdir(folder);
    await writeFile(join(home, 'file'), 'x');
    await symlink('../file', join(folder, 'link'));
    await symlink('nowhere', join(folder, 'broken'));
    expect(await describeAsked(requestOf([folder]), tools)).toMatch(/^sha256:/);
    await mkdir(join(home, 'elsewhere'));
    await symlink('../elsewhere', join(folder, 'folder'));
    expect(await describeAsked(requestOf([folder]), tools)).toBe(undefined);
  });

  it('covers the bytes of the keys that the environment names', async () => {
    const path = join(home, 'appliance-config.yaml');
    await writeFile(
      path,
      [
        'apiVersion: v1beta1',
        'kind: ApplianceConfig',
        'ocpRelease: {version: 4.21.3, channel: stable}',
        `pullSecret: '{"auths":{"quay.io":{"auth":"dTpw"}}}'`,
      ].join('\n'),
    );
    const env = { OCP_SIGNATURE_VERIFICATION_PK: 'keys.gpg' };
    const host = { cwd: home, env, redaction: createRedaction() };
    const request = await readLiveIsoRequest([path], {}, host as unknown as CliHost);
    expect(request.signatures.keys).toBe(join(home, 'keys.gpg'));
    expect(request.inputs).toContain(join(home, 'keys.gpg'));
  });
});
