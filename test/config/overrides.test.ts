import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ConfigProblems } from '../../src/config/document/problem.ts';
import { checkConfig, loadConfig } from '../../src/config/load-config.ts';
import { LIVE_ISO_RULES } from '../../src/recipes/live-iso/live-iso-rules.ts';

const TEXT = `apiVersion: v1beta1
ocpRelease: {version: "4.21.3"}
pullSecret: '{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}'
`;

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-overrides-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

it.each([
  'mirror/registries.conf',
  'cluster-manifests/infraenv.yaml',
  'cluster-manifests/pull-secret.yaml',
])(
  'the override %s beside a configuration is refused by name, to validate and to build',
  async (name) => {
    const path = join(directory, 'appliance-config.yaml');
    await writeFile(path, TEXT);
    const options = { env: {}, rules: LIVE_ISO_RULES };
    expect(checkConfig(TEXT, path, options).problems).toEqual([]);
    await mkdir(dirname(join(directory, name)));
    await writeFile(join(directory, name), 'x\n');
    expect(checkConfig(TEXT, path, options).problems).toMatchObject([
      { problem: `the override ${name} beside the configuration has no effect` },
    ]);
    expect(() => loadConfig(path, options)).toThrow(ConfigProblems);
  },
);
