import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseIgnition } from '../../../src/ignition/config.ts';
import {
  disablesImagePolicy,
  IMAGE_POLICY_VARIABLE,
} from '../../../src/openshift/release/image-policy.ts';
import { createLiveWorld, type LiveWorld } from '../../support/live-iso.ts';
import { serveLocally } from '../../support/local-http.ts';
import { findFile, readContents } from '../../support/node-configs.ts';
import { addRelease, type TestRelease } from '../../support/release.ts';
import { requireTool } from '../../support/tools.ts';

const NIGHTLY = '4.22.0-0.nightly-2026-05-01-000000';
const hasTools = requireTool('genisoimage') && requireTool('isohybrid');

describe('the image policy of a cluster', () => {
  it.each([
    ['4.22.0', undefined, false],
    ['4.22.0-ec.3', undefined, false],
    ['4.22.0-rc.1', undefined, false],
    [NIGHTLY, undefined, true],
    ['4.22.0-0.ci-2026-05-01-000000', undefined, true],
    ['4.22.0', true, true],
    [NIGHTLY, false, false],
  ])('of release %s, disabled by the configuration: %s, is off: %s', (version, wish, isOff) => {
    expect(disablesImagePolicy(version, wish)).toBe(isOff);
  });
});

describe.skipIf(!hasTools)('a live ISO', () => {
  let world: LiveWorld;
  let nightly: TestRelease;
  let builds = 0;
  const at = (name: string): string => join(world.directory, name);

  beforeAll(async () => {
    world = await createLiveWorld();
    const iso = await readFile(at('test.iso'));
    nightly = await addRelease(world.registry, { version: NIGHTLY, iso });
    const script = [
      '#!/bin/sh',
      'while [ $# -gt 0 ]; do [ "$1" = --dir ] && dir=$2; shift; done',
      `env > ${at('seen')}`,
      `echo '{"ignition":{"version":"3.2.0"}}' > "$dir/unconfigured-agent.ign"`,
    ];
    await writeFile(at('stand-in'), script.join('\n'), { mode: 0o755 });
  }, 60_000);
  afterAll(() => world.close());

  async function configure(...lines: readonly string[]): Promise<void> {
    world.env[IMAGE_POLICY_VARIABLE] = '';
    await world.writeConfig('  installer: stand-in', ...lines);
  }

  /** X.Y.Z beside the pullspec, as the builder of OVE media writes it. */
  async function takeNightly(): Promise<void> {
    const path = at('appliance-config.yaml');
    const text = await readFile(path, 'utf8');
    const url = `url: ${nightly.pullspec}`;
    await writeFile(path, text.replace('"4.21.3"', '"4.22.0"').replace(/url: .*/, url));
  }

  /** What the installer saw, what the rendezvous host will write, and whether a person is warned. */
  async function build(): Promise<{ seen: boolean; written: boolean; warned: boolean }> {
    // The result of an installer is kept: each build starts one of its own.
    const options = ['--work-dir', `work-${++builds}`, '--output', 'x.iso', '--force'];
    const built = await world.run('build', '--ignition', 'installer', ...options);
    expect(built.exitCode, built.stderr).toBe(0);
    const shown = await world.run('ignition', 'show', '--bootstrap', 'x.iso');
    const file = findFile(parseIgnition(shown.stdout, 'shown'), '/usr/local/bin/set-env-files.sh');
    return {
      seen: (await readFile(at('seen'), 'utf8')).includes(`${IMAGE_POLICY_VARIABLE}=true\n`),
      written: readContents(file).includes("disable_image_policy='yes'"),
      warned: built.stderr.includes('accepts images of OpenShift without a signature'),
    };
  }

  it('of a signed release leaves the image policy on', async () => {
    await configure();
    expect(await build()).toEqual({ seen: false, written: false, warned: false });
  });

  it('of a signed release switches off the image policy if the environment of the build asks for it', async () => {
    await configure();
    world.env[IMAGE_POLICY_VARIABLE] = '1';
    expect(await build()).toEqual({ seen: true, written: true, warned: true });
  });

  it('of a signed release switches off the image policy if its configuration asks for it', async () => {
    await configure('  disableImagePolicy: true');
    expect(await build()).toEqual({ seen: true, written: true, warned: true });
  });

  it('of a nightly switches off the image policy, because nightlies are not signed', async () => {
    await configure('  allowUnsigned: true');
    await takeNightly();
    expect(await build()).toEqual({ seen: false, written: true, warned: true });
  });

  it('leaves the image policy on if its configuration asks for it, regardless of the environment', async () => {
    await configure('  allowUnsigned: true', '  disableImagePolicy: false');
    await takeNightly();
    world.env[IMAGE_POLICY_VARIABLE] = 'true';
    expect(await build()).toEqual({ seen: false, written: false, warned: false });
  });

  it.each(['build', 'plan', 'resources', 'why'])(
    'of a nightly is refused by %s before anything but its metadata is fetched, until unsigned releases are accepted',
    async (command) => {
      await world.writeConfig('  installer: stand-in');
      await takeNightly();
      const before = world.registry.requests.length;
      const asked = command === 'why' ? ['etcd'] : [];
      const output = command === 'build' || command === 'plan' ? ['--output', 'y.iso'] : [];
      const options = ['--work-dir', `none-${command}`, ...output];
      const { exitCode, stderr } = await world.run(command, ...asked, ...options);
      expect(stderr).toContain('[signature.unsigned]');
      expect(exitCode).toBe(5);
      const fetched = world.registry.requests.slice(before).filter((line) => line !== 'GET /v2/');
      expect(fetched.map((line) => line.split('/').slice(1, -1).join('/'))).toEqual([
        'v2/ocp/release/manifests',
        'v2/ocp/release/blobs',
        'v2/ocp/release/blobs',
      ]);
    },
  );

  it('of a nightly is reported as unsigned everywhere', async () => {
    await configure();
    await takeNightly();
    const options = ['--allow-unsigned', '--ignition', 'embedded', '--output', 'u.iso'];
    const planned = await world.run('plan', ...options);
    expect(planned.stdout).toContain(`${NIGHTLY} is unsigned: `);
    const built = await world.run('build', ...options);
    expect(built.exitCode, built.stderr).toBe(0);
    expect(built.stdout).toContain(`${NIGHTLY} is unsigned: `);
    const report = JSON.parse(await readFile(at('u.iso.report.json'), 'utf8')) as object;
    expect(report).toMatchObject({ signatures: [{ version: NIGHTLY, status: 'unsigned' }] });
    const inspected = await world.run('inspect', 'u.iso');
    expect(inspected.stdout).toContain(`${NIGHTLY} is unsigned`);
    const json = await world.run('inspect', 'u.iso', '-o', 'json');
    expect(JSON.parse(json.stdout)).toMatchObject({ media: { unsigned: [NIGHTLY] } });
  });

  it('of a release without a signature is refused, and a plan names what is missing', async () => {
    await configure();
    const path = at('appliance-config.yaml');
    const text = await readFile(path, 'utf8');
    await writeFile(path, text.replace('signatures: release-signatures', 'signatures: empty'));
    await mkdir(at('empty'), { recursive: true });
    const stores = await serveLocally((_, response) => response.writeHead(502).end());
    world.env['https_proxy'] = stores.url; // no test asks the public stores
    const options = ['--ignition', 'embedded', '--retry-for', '0s'];
    const built = await world.run('build', ...options, '--output', 'z.iso');
    const planned = await world.run('plan', ...options);
    delete world.env['https_proxy'];
    await stores.close();
    for (const { stderr, exitCode } of [built, planned]) {
      expect(stderr).toContain('[signature.store-failed]');
      expect(stderr).toContain('https://mirror.openshift.com/pub/openshift-v4/signatures/');
      expect(stderr).toContain('https://storage.googleapis.com/openshift-release/');
      expect(exitCode).toBe(4);
    }
  });
});
