import { execFileSync } from 'node:child_process';
import { copyFile, mkdir, open, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SIGNATURE_SETTINGS } from '../../demo/release-signer.ts';
import { digestOf } from '../../src/base/digest.ts';
import { openIso } from '../../src/iso/read/open.ts';
import type { ExtractedInstaller } from '../../src/media/extract-installer.ts';
import { readIndex } from '../../src/media/media-index.ts';
import {
  configImageMembers,
  IMAGE_SET_PATH,
  makeConfigImage,
  packConfigArchive,
  unconfiguredIgnition,
} from '../support/config-image.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid', 'xorriso', 'bsdtar', 'openssl'].every(requireTool);

/**
 * A stand-in of openshift-install: it takes the release out of its own markers, as the real one does,
 * and writes it into the cluster-image-set of what it makes.
 */
const INSTALLER = Buffer.from(
  [
    '#!/bin/bash',
    'while [ $# -gt 0 ]; do case "$1" in --dir) dir=$2; shift;; create) what=$2;; esac; shift; done',
    'image() { tr "\\0" "\\n" < "$0" | grep -a -m1 "@sha256:[0-9a-f]*$"; }',
    'set=$(printf "kind: ClusterImageSet\\nmetadata:\\n  name: openshift-4.21.3\\nspec:\\n  releaseImage: %s\\nstatus: {}" "$(image)")',
    'if [ "$what" = unconfigured-ignition ]; then',
    `  sed "s#SET#$(printf '%s\\n' "$set" | base64 -w0)#" > "$dir/unconfigured-agent.ign" <<'END'`,
    JSON.stringify(unconfiguredIgnition('SET')).replace(
      Buffer.from('SET').toString('base64'),
      'SET',
    ),
    'END',
    'else',
    `  printf '%s\\n' "$set" > "$dir/cluster-image-set.yaml"`,
    'fi',
    'exit 0',
    `\0_RELEASE_IMAGE_LOCATION_\0${'X'.repeat(200)}\0`,
    `\0_RELEASE_VERSION_LOCATION_\0${'X'.repeat(60)}\0`,
    `\0_RELEASE_ARCHITECTURE_LOCATION_\0${'X'.repeat(20)}\0\n`,
  ].join('\n'),
  'latin1',
);

describe.skipIf(!hasTools)('the installer of a medium', () => {
  let world: LiveWorld;
  let steps: string;
  const at = (name: string): string => join(world.directory, name);
  beforeAll(async () => {
    world = await createLiveWorld({ installer: INSTALLER });
    await world.writeConfig();
    const path = at('appliance-config.yaml');
    const text = await readFile(path, 'utf8');
    await writeFile(
      path,
      text
        .replace('enableInteractiveFlow: true', 'enableInteractiveFlow: false')
        .replace('ignition: embedded', 'ignition: installer'),
    );
    const built = await world.run('build', '--output', 'live.iso');
    expect(built.exitCode, built.stderr).toBe(0);
    steps = built.stdout;
    await writeFile(path, `${await readFile(path, 'utf8')}enableFips: true\n`);
    const fips = await world.run('build', '--output', 'fips.iso');
    expect(fips.exitCode, fips.stderr).toBe(0);
    await world.registry.close(); // nothing may come from the network from here on
  });
  afterAll(() => world.close());

  const KEYS = ['--signature-keys', SIGNATURE_SETTINGS.signatureKeys];
  const extract = (...args: readonly string[]) =>
    world.run('extract', 'installer', 'live.iso', '--out', 'out', ...KEYS, ...args);

  it('is refused if the key that signed its release is not trusted', async () => {
    const run = await world.run('extract', 'installer', 'live.iso', '--out', 'untrusted');
    expect([run.exitCode, run.stderr]).toEqual([5, expect.stringContaining('[signature.')]);
    const unsigned = ['--allow-unsigned']; // it is signed, by somebody else
    const again = await world.run(
      'extract',
      'installer',
      'live.iso',
      '--out',
      'untrusted',
      ...unsigned,
    );
    expect(again.exitCode, again.stderr).toBe(5);
    expect(await readdir(at('untrusted')).catch(() => [])).toEqual([]);
  });

  it('makes configuration images that the medium accepts', async () => {
    const { exitCode, stdout, stderr } = await extract('-o', 'json');
    expect(exitCode, stderr).toBe(0);
    const result = JSON.parse(stdout) as ExtractedInstaller;
    const path = at('out/openshift-install');
    expect(result).toMatchObject({
      path,
      fips: false,
      version: '4.21.3',
      releaseImage: world.release.pullspec,
      digest: digestOf(await readFile(path)),
    });
    expect((await stat(path)).mode & 0o7777).toBe(0o755);
    await mkdir(at('site'));
    execFileSync(path, ['agent', 'create', 'config-image', '--dir', at('site')]);
    const imageSet = await readFile(at('site/cluster-image-set.yaml'), 'utf8');
    expect(imageSet).toContain(world.release.pullspec);
    const members = { ...configImageMembers(), [IMAGE_SET_PATH]: imageSet };
    const archive = await packConfigArchive(world.directory, members);
    await makeConfigImage(world.directory, archive, { name: 'agentconfig.noarch.iso' });
    const checked = await world.run(
      'config-iso',
      'check',
      'agentconfig.noarch.iso',
      '--medium',
      'live.iso',
    );
    expect(checked.exitCode, checked.stdout + checked.stderr).toBe(0);
    expect(checked.stdout).toContain('live.iso accepts agentconfig.noarch.iso\n');
  });

  it('is named as the next step after a build, before the configuration image and its check', () => {
    const keys = '--signature-keys release-keys.gpg';
    expect(steps).toContain(`  2. sealift extract installer live.iso --out . ${keys}\n`);
    expect(steps).toContain(
      'sealift config-iso check site/agentconfig.noarch.iso --medium live.iso',
    );
  });

  it('is printed with its SHA-256 and the release', async () => {
    const { stdout } = await extract();
    const hex = digestOf(await readFile(at('out/openshift-install'))).slice('sha256:'.length);
    expect(stdout).toMatch(/^out\/openshift-install is complete: .* OpenShift 4\.21\.3$/m);
    expect(stdout).toContain(
      `  sha256    ${hex}\n  release   ${world.release.pullspec}\n  signed    by `,
    );
  });

  it('replaces another file only with --force, and leaves no temporary file', async () => {
    await extract();
    expect((await extract()).exitCode).toBe(0);
    await writeFile(at('out/openshift-install'), 'somebody else');
    const refused = await extract();
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toContain('output.exists');
    expect(await readFile(at('out/openshift-install'), 'utf8')).toBe('somebody else');
    expect((await extract('--force')).exitCode).toBe(0);
    expect((await readdir(at('out'))).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  it('is the installer for FIPS when --fips is given', async () => {
    const { exitCode, stdout } = await extract('--fips', '-o', 'json');
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      fips: true,
      path: at('out/openshift-install-fips'),
    });
    const fips = await stat(at('out/openshift-install-fips'));
    expect(fips.size).toBeGreaterThan((await stat(at('out/openshift-install'))).size);
  });

  it('is the installer for FIPS on a medium that boots with FIPS', async () => {
    const run = await world.run(
      'extract',
      'installer',
      'fips.iso',
      '--out',
      'fips',
      '-o',
      'json',
      ...KEYS,
    );
    expect(JSON.parse(run.stdout)).toMatchObject({ fips: true });
    expect(await readdir(at('fips'))).toEqual(['openshift-install-fips']);
  });

  it('is not written when a layer on the medium is damaged', async () => {
    const iso = await openIso(at('live.iso'));
    const index = await readIndex(iso);
    await iso.close();
    const image = index?.images.find(({ name }) => name === 'installer');
    const manifest = index?.extents.find(({ digest }) => digest === image?.manifests[0]);
    const bytes = await readFile(at('live.iso'));
    const text = bytes
      .subarray(manifest?.offset, (manifest?.offset ?? 0) + (manifest?.size ?? 0))
      .toString('utf8');
    const layers = (JSON.parse(text) as { layers: { digest: string }[] }).layers;
    const layer = index?.extents.find(({ digest }) => digest === layers.at(-1)?.digest);
    await copyFile(at('live.iso'), at('damaged.iso'));
    const file = await open(at('damaged.iso'), 'r+');
    const middle = (layer?.offset ?? 0) + Math.floor((layer?.size ?? 0) / 2);
    await file.write(Buffer.from([(bytes[middle] ?? 0) ^ 1]), 0, 1, middle);
    await file.close();
    const run = await world.run('extract', 'installer', 'damaged.iso', '--out', 'damaged', ...KEYS);
    expect(run.exitCode).toBe(5);
    expect(run.stderr).toContain('medium.blob-damaged');
    expect(await readdir(at('damaged')).catch(() => [])).toEqual([]);
  });

  async function refuse(iso: string): Promise<string> {
    const { exitCode, stderr } = await world.run('extract', 'installer', iso, '--out', 'x');
    expect(exitCode, stderr).toBe(5);
    expect(stderr).toContain('medium.no-index');
    return stderr;
  }

  it('is refused for an ISO without our index, with a hint that names the release of the ISO', async () => {
    const bytes = await readFile(at('live.iso'));
    for (const name of ['sealift', 'SEALIFT']) {
      for (let place = bytes.indexOf(name); place !== -1; place = bytes.indexOf(name, place + 1)) {
        bytes.write(name === 'sealift' ? 'another' : 'ANOTHER', place); // of the directory that the index is in
      }
    }
    await writeFile(at('foreign.iso'), bytes);
    const stderr = await refuse('foreign.iso');
    expect(stderr).toContain(
      `oc adm release extract --command openshift-install ${world.release.pullspec}`,
    );
  });

  it('is refused for an ISO that is not a live ISO, with a hint about where to get the installer', async () => {
    await makeConfigImage(world.directory, gzipSync(''), { name: 'config.iso' });
    const stderr = await refuse('config.iso');
    expect(stderr).toContain('oc adm release extract --command openshift-install');
  });
});

describe.skipIf(!hasTools)('an installer without a place for the release', () => {
  it('is refused, because it would install the release of its build', async () => {
    const world = await createLiveWorld({ installer: Buffer.from('#!/bin/sh\nexit 0\n') });
    try {
      await world.writeConfig();
      const built = await world.run('build', '--output', 'live.iso');
      expect(built.exitCode, built.stderr).toBe(0);
      const { exitCode, stderr } = await world.run(
        'extract',
        'installer',
        'live.iso',
        '--out',
        'x',
        '--signature-keys',
        SIGNATURE_SETTINGS.signatureKeys,
      );
      expect(exitCode, stderr).toBe(5);
      expect(stderr).toContain('installer.other-release');
      expect(stderr).toContain(`expected: ${world.release.pullspec}`);
      expect(await readdir(join(world.directory, 'x')).catch(() => [])).toEqual([]);
    } finally {
      await world.close();
    }
  });
});
