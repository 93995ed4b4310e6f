import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hasFile } from '../../../src/base/disk/files.ts';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { describeError } from '../../../src/cli/terminal/errors.ts';
import { parseIgnition } from '../../../src/ignition/config.ts';
import { Secret } from '../../../src/base/secret.ts';
import { createFileDigests } from '../../../src/base/disk/file-digests.ts';
import {
  planInstallerArgs,
  planInstallerInputs,
} from '../../../src/openshift/installer/installer.ts';
import {
  renderUnconfigured,
  type RenderUnconfiguredInput,
} from '../../../src/stages/3-render/render-unconfigured.ts';
import { runInstaller } from '../../../src/stages/3-render/run-installer.ts';
import { createStageContext } from '../../support/stage-context.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-unconfigured-'));
});
afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

const DIGEST = 'quay.io/ocp/release@sha256:' + 'a'.repeat(64);
const PULL_SECRET = '{"auths":{"a.example":{"auth":"c2VjcmV0OnNlY3JldA=="}}}';
const input: RenderUnconfiguredInput = {
  release: { version: '4.21.3', arch: 'x86_64', digestReference: DIGEST },
  interactive: true,
  registriesConf: 'unqualified-search-registries = []\n',
};

const WRITE = [
  'while [ $# -gt 0 ]; do [ "$1" = --dir ] && dir=$2; shift; done',
  'cat > "$dir/unconfigured-agent.ign" <<END',
  '{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/usr/local/share/assisted-service/assisted-service.env","overwrite":true,"contents":{"source":"data:;base64,$(printf "INFRA_ENV_ID=$(cat /proc/sys/kernel/random/uuid)\\nX=1\\n" | base64 -w0)"}}]}}',
  'END',
].join('\n');

async function render(
  script: string,
  { release = input.release, while: meanwhile = () => Promise.resolve() }: Changes = {},
): Promise<string> {
  const path = join(directory, 'openshift-install');
  await writeFile(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const digests = createFileDigests(join(directory, 'digests'));
  const installer = await digests.identify(path);
  if (!installer) throw new Error('the installer was just written');
  await meanwhile(path);
  const { interactive, registriesConf } = input;
  const files = planInstallerInputs({ arch: 'x86_64', registriesConf, pullSecret: PULL_SECRET });
  const installed = await runInstaller.run(
    {
      installer,
      args: planInstallerArgs(release.version, interactive),
      files: files.map(({ path, text }) => ({ path, text: new Secret(text) })),
    },
    { workDir: join(directory, 'work'), digests },
    createStageContext(),
  );
  return renderUnconfigured.run({ ...input, release, installed }, {}, createStageContext());
}

type Changes = {
  readonly release?: RenderUnconfiguredInput['release'];
  /** Between the look at the installer and its start. */
  readonly while?: (path: string) => Promise<void>;
};

describe('the installer of the release', () => {
  it('gives the same config twice, although it draws a random id', async () => {
    const first = await render(WRITE);
    expect(await render(WRITE)).toBe(first);
    const paths = parseIgnition(first, 'test').storage?.files?.map(({ path }) => path);
    expect(paths).toContain('/etc/assisted/interactive-ui');
  });

  it('sees a private directory and the manifests, but not our environment', async () => {
    process.env['SEALIFT_TEST_SECRET'] = 'must not be seen';
    const seen = join(directory, 'seen');
    await render(`{ env; ls -lR . ; } > ${seen}\n${WRITE}`);
    const text = await readFile(seen, 'utf8');
    expect(text).not.toContain('SEALIFT_TEST_SECRET');
    expect(text).toMatch(/-rw-------.* infraenv\.yaml/);
    expect(text).toMatch(/-rw-------.* pull-secret\.yaml/);
    expect(await readdir(join(directory, 'work'))).toEqual([]);
  });

  it('gets --interactive only for releases that know it', async () => {
    const seen = join(directory, 'seen');
    await render(`echo "$@" > ${seen}\n${WRITE}`);
    expect(await readFile(seen, 'utf8')).not.toContain('--interactive');
    const release = { ...input.release, version: '4.20.4' };
    await render(`echo "$@" > ${seen}\n${WRITE}`, { release });
    expect(await readFile(seen, 'utf8')).toContain('unconfigured-ignition --interactive --dir');
  });

  it('fails with its last output, which is printed without the pull secret', async () => {
    const failing = render('cat cluster-manifests/pull-secret.yaml >&2; echo broken >&2; exit 3');
    await expect(failing).rejects.toMatchObject({ code: 'tool.failed' });
    const redaction = createRedaction();
    redaction.add(PULL_SECRET);
    const printed = describeError(await failing.catch((error: unknown) => error), redaction).text;
    expect(printed).toContain('broken');
    expect(printed).toContain('[redacted]');
    expect(printed).not.toContain('c2VjcmV0');
    expect(await readdir(join(directory, 'work'))).toEqual([]);
  });

  it('is not started if it was replaced after its digest was taken', async () => {
    const seen = join(directory, 'seen');
    const replace = (path: string): Promise<void> => writeFile(path, `#!/bin/sh\ntouch ${seen}\n`);
    await expect(render(WRITE, { while: replace })).rejects.toMatchObject({
      code: 'installer.changed',
      exitCode: 5,
    });
    expect(await hasFile(seen)).toBe(false);
  });

  it('is refused if it writes nothing, or no Ignition config', async () => {
    await expect(render('exit 0')).rejects.toMatchObject({ code: 'installer.no-output' });
    const rubbish = 'echo rubbish > unconfigured-agent.ign';
    await expect(render(rubbish)).rejects.toMatchObject({ code: 'ignition.malformed' });
  });
});
