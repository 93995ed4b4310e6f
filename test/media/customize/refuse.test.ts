import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openIso } from '../../../src/iso/read/open.ts';
import { planCustomisation } from '../../../src/media/customize/plan.ts';
import { refuseUnfit, requireInstallationKept } from '../../../src/media/customize/refuse.ts';
import { proveImage } from '../../../src/media/proof.ts';
import type { CustomValues, InstallerValues } from '../../../src/openshift/agent/values.ts';
import { fakeImage, writeSparseMedium } from '../../support/sparse-medium.ts';
import { makeTinyIso } from '../../support/tiny-iso.ts';

const FILE = { name: 'x', bytes: Buffer.from('x') };
const FOR_INSTALLER: InstallerValues = {
  destDevice: '/dev/vda',
  destIgnition: [FILE],
  destConsole: ['tty0'],
  destKargsAppend: ['a'],
  destKargsDelete: ['b'],
  preInstall: [FILE],
  postInstall: [FILE],
  installerConfig: [FILE],
};

const format = (rest: object): string =>
  JSON.stringify({ ignition: { version: '3.2.0' }, ...rest });
const INSTALLATION = {
  storage: {
    files: [{ path: '/var/tmp/ibi-configuration.json', contents: { source: 'data:,1' } }],
  },
  systemd: { units: [{ name: 'install-rhcos-and-restore-seed.service', enabled: true }] },
};
const AGENTS = { storage: { files: [{ path: '/etc/assisted/manifests/infraenv.yaml' }] } };

describe('values for coreos-installer', () => {
  it.each([
    ['installs a seed image', format(INSTALLATION), false],
    ['installs a cluster', format(AGENTS), false],
    ['installs a cluster', format({}), true],
  ])('are refused by name on an ISO that %s by itself', (reason, own, isOurs) => {
    for (const [key, value] of Object.entries(FOR_INSTALLER)) {
      const installer = { [key]: value, liveIgnition: [FILE] };
      expect(() => {
        refuseUnfit({ installer }, { own, isOurs });
      }, key).toThrow(
        expect.objectContaining({
          code: 'customize.own-installer',
          message: expect.stringContaining(`: it ${reason} by itself`) as string,
        }),
      );
    }
    expect(() => {
      refuseUnfit({ installer: FOR_INSTALLER }, { own, isOurs });
    }).toThrow(
      /a destination device and a config of the installed system and .* and parameters of coreos-installer:/,
    );
  });

  it('are taken by a live ISO, which has no config of its own, or one of its user', () => {
    for (const taking of [
      { own: undefined, isOurs: true },
      { own: format({}), isOurs: false },
    ])
      expect(() => {
        refuseUnfit({ installer: FOR_INSTALLER }, taking);
      }).not.toThrow();
  });
});

describe('an ISO that installs a seed image', () => {
  const own = format(INSTALLATION);

  it('refuses a pull secret, because it installs with its own', () => {
    const taking = { own, isOurs: true };
    expect(() => {
      refuseUnfit({ pullSecret: '{}' }, taking);
    }).toThrow(expect.objectContaining({ code: 'customize.own-secret' }));
    expect(() => {
      refuseUnfit({ sshKeys: ['a'], installer: { liveIgnition: [FILE] } }, taking);
    }).not.toThrow();
  });

  it('keeps the parts that install, also where a merged config would change them', () => {
    const changed = JSON.stringify({
      ...INSTALLATION,
      ignition: {
        version: '3.3.0',
        config: {
          merge: [
            {
              source: `data:,${encodeURIComponent(
                format({
                  systemd: {
                    units: [{ name: 'install-rhcos-and-restore-seed.service', mask: true }],
                  },
                }),
              )}`,
            },
          ],
        },
      },
    });
    expect(() => {
      requireInstallationKept(own, changed);
    }).toThrow(
      expect.objectContaining({
        code: 'customize.installation',
        message:
          'the values change install-rhcos-and-restore-seed.service, without which this ISO does not install',
      }),
    );
    const added = format({ ...INSTALLATION, passwd: { users: [{ name: 'core' }] } });
    expect(() => {
      requireInstallationKept(own, added);
    }).not.toThrow();
    expect(() => {
      requireInstallationKept(format({}), added);
    }).not.toThrow();
  });
});

describe('a medium that does not boot', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-refuse-'));
  });
  afterAll(() => rm(directory, { recursive: true }));

  async function refusal(path: string, values: CustomValues): Promise<unknown> {
    const iso = await openIso(path);
    try {
      return await planCustomisation(iso, values).catch((error: unknown) => error);
    } finally {
      await iso.close();
    }
  }

  it('takes no value, and names its product and the values', async () => {
    const [tiny, upgrade] = [join(directory, 'tiny.iso'), join(directory, 'upgrade.iso')];
    await writeFile(tiny, makeTinyIso());
    const release = { version: '4.21.3', reference: 'quay.io/r@sha256:3', architecture: 'amd64' };
    const medium = { release, images: [fakeImage('etcd')], blobs: [] };
    await writeSparseMedium(upgrade, tiny, { ...medium, product: 'upgrade-iso' });
    expect(
      await refusal(upgrade, { sshKeys: ['a'], installer: { destDevice: '/dev/vda' } }),
    ).toMatchObject({
      code: 'customize.no-areas',
      message: `${upgrade} cannot take SSH keys and a destination device: it is an upgrade ISO, which does not boot`,
    });
    expect(await refusal(tiny, { sshKeys: ['a'] })).toMatchObject({ code: 'iso.no-embed-area' });
    const config = Buffer.from(makeTinyIso());
    proveImage(config, { product: 'config-iso', program: '1', of: 'site' });
    await writeFile(tiny, config);
    expect(await refusal(tiny, { kargs: { append: ['a'] } })).toMatchObject({
      code: 'customize.no-areas',
      message: `${tiny} cannot take kernel arguments: it is a configuration ISO, which does not boot`,
    });
  });
});
