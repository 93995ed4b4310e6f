import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { encodeEmbedded } from '../../src/media/areas.ts';
import { judgeAreas, summarizeAreas } from '../../src/media/judge-areas.ts';
import type { MediumAreas } from '../../src/media/medium.ts';

const SIZE = 65_536;
const AREA = { offset: 4096, size: SIZE };
const archive = (config: object): Uint8Array =>
  encodeEmbedded({ config: JSON.stringify(config), keyfiles: [] });
const fill = (bytes: Uint8Array): Uint8Array =>
  Buffer.concat([bytes, Buffer.alloc(SIZE - bytes.length)]);

const OWN = {
  ignition: { version: '3.2.0' },
  storage: { files: [{ path: '/etc/own', contents: { source: 'data:,own' } }] },
  systemd: { units: [{ name: 'own.service', enabled: true }] },
};
const BUILT = { ...OWN, passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['key'] }] } };

/** The form in which coreos-installer writes configs that it is given. */
const wrap = (...configs: readonly object[]): object => ({
  ignition: {
    version: '3.3.0',
    config: {
      merge: configs.map((config) => ({
        compression: 'gzip',
        source: `data:;base64,${gzipSync(JSON.stringify(config)).toString('base64')}`,
      })),
    },
  },
});

function place(now: Uint8Array): MediumAreas {
  const bytes = fill(now);
  return {
    embed: { ...AREA, bytes },
    now: [{ kind: 'ignition', offset: AREA.offset, bytes }],
    built: { archive: archive(BUILT), kargs: '' },
    bare: { archive: archive(OWN), kargs: '' },
  };
}

const judge = async (now: Uint8Array) => {
  const judged = await judgeAreas(place(now));
  return [judged[0]?.state, judged[0]?.problem === undefined, summarizeAreas(judged)];
};

describe('an Ignition area', () => {
  it('is customised if the own units and files lie inside configs that it merges, at any depth', async () => {
    const site = { ignition: { version: '3.3.0' }, storage: { files: [{ path: '/etc/site' }] } };
    for (const config of [wrap(OWN), wrap(site, OWN), wrap(wrap(site), wrap(wrap(OWN)))])
      expect(await judge(archive(config))).toEqual(['customized', true, 'customised']);
    expect(await judge(archive(wrap(site)))).toEqual(['replaced', false, 'customised']);
    expect(await judge(archive(site))).toEqual(['replaced', false, 'customised']);
  });

  it('that replaces the own config is replaced, with it beside the replacement or not', async () => {
    const [replace] = (wrap({ ignition: { version: '3.2.0' } }) as { ignition: Replacing }).ignition
      .config.merge;
    const config = { ...OWN, ignition: { version: '3.3.0', config: { replace } } };
    expect(await judge(archive(config))).toEqual(['replaced', false, 'customised']);
  });

  it('is as built, bare or removed by its bytes', async () => {
    expect(await judge(archive(BUILT))).toEqual(['as built', true, 'as built']);
    expect(await judge(archive(OWN))).toEqual(['bare', true, 'bare']);
    expect(await judge(new Uint8Array())).toEqual(['removed', false, 'customised']);
  });
});

type Replacing = { readonly config: { readonly merge: readonly object[] } };
