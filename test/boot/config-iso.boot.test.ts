import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hexOf } from '../../src/base/digest.ts';
import { readConfigIso, type ConfigIso } from '../../src/sites/config-iso.ts';
import { mountInGuest } from '../support/config-iso-guest.ts';
import {
  createConfigIsoWorld,
  inFolder,
  manifestOf,
  siteTree,
  type ConfigIsoWorld,
} from '../support/config-iso-world.ts';
import { makeKeyRing } from '../support/site-identity.ts';
import { buildBaseIso } from './base-iso.ts';
import { BOOT_CACHE, hasBootHost } from './boot-host.ts';

const LONG = `${'99-a-very-long-name-of-a-manifest'.repeat(4)}.yaml`;
const INSTALL = ['imageDigestSources: [{source: quay.io/a, mirrors: [quay.io/b]}]'];

describe.skipIf(!hasBootHost())('the kernel of a node', () => {
  let world: ConfigIsoWorld;
  let base = '';
  beforeAll(async () => {
    world = await createConfigIsoWorld();
    base = await buildBaseIso(BOOT_CACHE);
    const keys = await makeKeyRing();
    const small = siteTree('small', { number: 1 });
    const manifests = {
      [LONG]: manifestOf('A'),
      '1-Upper.yaml': manifestOf('B'),
      '1-upper.yml': '',
    };
    const large = siteTree('large', { number: 2, install: INSTALL, manifests });
    world.write(inFolder('sites', small, large));
    const { failed } = await world.build(keys, { sites: 'sites', out: 'out' });
    expect(failed).toEqual([]);
    await keys.close();
  });
  afterAll(() => world.close());

  it.each([
    ['small', 'cdrom', '/dev/sr0'],
    ['large', 'cdrom', '/dev/sr0'],
    ['large', 'disk', '/dev/vda'],
  ] as const)(
    'finds the ISO of the %s site by its label as a %s and mounts its exact tree',
    async (name, as, device) => {
      const work = await mkdtemp(join(tmpdir(), 'config-iso-guest-'));
      try {
        const iso = world.at('out', `${name}.iso`);
        const seen = await mountInGuest(iso, as, { base, work });
        expect(seen).toEqual({ device, tree: describeTree(await readConfigIso(iso)) });
      } finally {
        await rm(work, { recursive: true });
      }
    },
  );
});

/** In the words of the guest. */
const describeTree = ({ entries }: ConfigIso): readonly string[] =>
  entries
    .map(({ path, digest }) => {
      if (digest === undefined) return `.${path}`;
      const mode = path.endsWith('/manifest.json') ? '600' : '644';
      return `.${path} ${mode} ${hexOf(digest)}`;
    })
    .sort();
