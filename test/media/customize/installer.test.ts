import { existsSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { decodeEmbedded } from '../../../src/media/areas.ts';
import { isForInstaller, renderInstallerConfig } from '../../../src/media/customize/installer.ts';
import type { InstallerValues, NamedFile } from '../../../src/openshift/agent/values.ts';

const DATA = '../shared/data/judged/coreos';
const FEATURES = {
  installerConfig: true,
  installerConfigDirectives: ['console'],
  liveInitrdNetwork: true,
};

const file = (name: string, text = 'x'): NamedFile => ({ name, bytes: Buffer.from(text) });

const NOT_GZIP = JSON.stringify({
  ignition: { version: '3.4.0' },
  storage: { files: [{ path: '/a', contents: { source: 'data:,a', compression: 'gzip' } }] },
});

const warned: string[] = [];
const render = (
  values: InstallerValues,
  options: { readonly features?: typeof FEATURES; readonly hasNetwork?: boolean } = {},
): string =>
  renderInstallerConfig(values, {
    features: FEATURES,
    hasNetwork: false,
    warn: (text) => warned.push(text),
    ...options,
  });

type Recorded = {
  readonly fixture: string;
  readonly customize: readonly {
    readonly 'option': string;
    readonly 'ignition area'?: { readonly base64: string };
  }[];
};

/** The text with what its resources unpack to: another deflate gives other bytes. */
const unpack = (text: string): string =>
  text.replaceAll(/data:;base64,([^"]+)/g, (_, base64: string) =>
    gunzipSync(Buffer.from(base64, 'base64')).toString('utf8'),
  );

describe.skipIf(!existsSync(DATA))('a config for coreos-installer', () => {
  it('is the recorded text of coreos-installer, but for the packed bytes of its resources', async () => {
    const inputs = JSON.parse(readFileSync(`${DATA}/inputs.json`, 'utf8')) as Record<
      string,
      string
    >;
    const fixtures = JSON.parse(readFileSync(`${DATA}/fixtures.json`, 'utf8')) as Recorded[];
    const given = (name: string): readonly NamedFile[] => [file(name, inputs[name])];
    const values: Readonly<Record<string, InstallerValues>> = {
      'destination device': { destDevice: '/dev/vda' },
      'destination console': { destDevice: '/dev/vda', destConsole: ['ttyS0,115200n8'] },
      'destination kernel arguments': {
        destDevice: '/dev/vda',
        destKargsAppend: ['foo=1'],
        destKargsDelete: ['quiet'],
      },
      'Ignition CA': { ignitionCa: given('ca.pem') },
      'pre-install script': { preInstall: given('pre.sh') },
      'post-install script': { postInstall: given('post.sh') },
      'installer config': { installerConfig: given('inst.yaml') },
    };
    const recorded = fixtures.find(({ fixture }) => fixture === 'embed-areas-2023-07.x86_64');
    for (const [name, value] of Object.entries(values)) {
      const answer = recorded?.customize.find(({ option }) => option === name);
      const area = Buffer.from(answer?.['ignition area']?.base64 ?? '', 'base64');
      const { config = '' } = await decodeEmbedded(area);
      expect(unpack(render(value)), name).toBe(unpack(config));
    }
  });
});

describe('values for coreos-installer', () => {
  it('say when the ISO installs without confirmation, and copy the network that they are given', () => {
    warned.length = 0;
    const text = render({ destDevice: '/dev/vda' }, { hasNetwork: true });
    expect(warned).toEqual(['the ISO installs to /dev/vda when it boots, without confirmation']);
    const { storage } = JSON.parse(text) as {
      readonly storage: { readonly files: readonly { readonly path: string }[] };
    };
    expect(storage.files.map(({ path }) => path)).toEqual([
      '/etc/coreos/installer.d/0000-customize.yaml',
    ]);
    warned.length = 0;
    render({ preInstall: [file('a.sh')] }, { hasNetwork: true });
    expect(warned).toEqual([]);
  });

  it.each([
    ['customize.no-installer-config', { destDevice: '/dev/vda' }],
    ['customize.no-console', { destConsole: ['tty0'] }],
    ['customize.twice', { preInstall: [file('a.sh'), file('a.sh')] }],
    ['ignition.version', { liveIgnition: [file('a.ign', '{"ignition":{"version":"4.0.0"}}')] }],
    ['ignition.malformed', { destIgnition: [file('a.ign', '{')] }],
    ['ignition.invalid', { destIgnition: [file('a.ign', NOT_GZIP)] }],
    [
      'config.not-utf8',
      { liveIgnition: [{ name: 'a.ign', bytes: Buffer.from('{"é"}', 'latin1') }] },
    ],
  ])('are refused with %s where the ISO cannot take them', (code, values) => {
    const features = { ...FEATURES, installerConfig: false, installerConfigDirectives: [] };
    const options = code.startsWith('customize.no') ? { features } : {};
    expect(() => render(values, options)).toThrow(expect.objectContaining({ code }));
  });

  it('concern an installation unless they are for the live system alone', () => {
    expect(isForInstaller({ liveIgnition: [], ignitionCa: [] })).toBe(false);
    expect(isForInstaller({ preInstall: [] })).toBe(true);
  });
});
