import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { renderInstallationIgnition } from '../../../src/openshift/installation/ignition.ts';
import type { InstallationSettings } from '../../../src/openshift/installation/mirrors.ts';
import { requireTool } from '../../support/tools.ts';

const SYSTEMD = '/usr/lib/systemd/systemd';
const canAsk =
  requireTool('systemd-analyze') && existsSync(SYSTEMD) && process.getuid !== undefined;

const SETTINGS: InstallationSettings = {
  additionalTrustBundle: '',
  coreosInstallerArgs: [],
  imageDigestSources: [],
  extraPartitionLabel: '',
  extraPartitionNumber: 5,
  extraPartitionStart: '-40G',
  installationDisk: '/dev/vda',
  releaseRegistry: '',
  seedVersion: '4.21.3',
  sshKey: '',
  seedImage: 'quay.io/edge/seed:4.21.3',
  shutdown: false,
  skipDiskCleanup: false,
};

describe.skipIf(!canAsk)('the environment of the install unit, as systemd reads it', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-unit-'));
    await chmod(directory, 0o755);
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  /** A manager of a user loads the unit, prints what it made of it, and starts nothing. */
  async function readEnvironment(settings: Partial<InstallationSettings>): Promise<string[]> {
    const { systemd } = renderInstallationIgnition({
      settings: { ...SETTINGS, ...settings },
      pullSecret: '{}',
    });
    await writeFile(join(directory, 'own.service'), systemd?.units?.[0]?.contents ?? '');
    const home = join(directory, 'home');
    await mkdir(home);
    await chmod(home, 0o777);
    const args = [SYSTEMD, '--test', '--user', '--unit=own.service'];
    const isRoot = process.getuid?.() === 0; // whose user manager needs a session
    const [file = '', ...rest] = isRoot
      ? ['setpriv', '--reuid=65534', '--clear-groups', ...args]
      : args;
    const output = execFileSync(file, rest, {
      env: { XDG_RUNTIME_DIR: home, HOME: home, SYSTEMD_UNIT_PATH: `${directory}:` },
      stdio: ['ignore', 'pipe', 'pipe'],
      encoding: 'utf8',
      maxBuffer: 1 << 26,
    });
    const [, own = ''] = output.split('-> Unit own.service:\n');
    const [unit = ''] = own.split('-> Unit ');
    const found = [...unit.matchAll(/^\t+Environment: (.*)$/gm)].map(([, text = '']) => text);
    return found.filter((text) => !/^(?:IBI_CONFIGURATION|PULL_SECRET)_FILE=/.test(text));
  }

  it('has every value unchanged, even with characters that systemd interprets', async () => {
    const seedImage = `q.io/a "b" 'c' $HOME \${HOME} %h %% \\x41 \\\\ ; # \t é ☃`;
    const httpProxy = "http://user:p%40s$s'x@proxy.lab:3128/%25n";
    const noProxy = '10.0.0.0/8, .lab,2001:db8::/32, *';
    expect(
      await readEnvironment({ seedImage, proxy: { httpProxy, httpsProxy: 'http://p:1', noProxy } }),
    ).toEqual([
      `SEED_IMAGE=${seedImage}`,
      ...[`HTTP_PROXY=${httpProxy}`, `http_proxy=${httpProxy}`],
      ...['HTTPS_PROXY=http://p:1', 'https_proxy=http://p:1'],
      ...[`NO_PROXY=${noProxy}`, `no_proxy=${noProxy}`],
    ]);
  });

  it('has no variable of a proxy that is not set', async () => {
    expect(await readEnvironment({ proxy: { httpsProxy: 'http://p:1', httpProxy: '' } })).toEqual([
      `SEED_IMAGE=${SETTINGS.seedImage}`,
      ...['HTTPS_PROXY=http://p:1', 'https_proxy=http://p:1'],
    ]);
  });
});
