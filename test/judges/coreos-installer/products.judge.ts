import { copyFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AreaState } from '../../../src/media/judge-areas.ts';
import { createComparer } from '../find-judge.ts';
import { PRODUCT_DIFFERENCES } from './differences.ts';
import { createJudgeWorld, judge, type JudgeWorld, makeProducts } from './world.ts';

const comparer = createComparer(PRODUCT_DIFFERENCES);

type Areas = { readonly ignition: AreaState; readonly kargs: AreaState };

type Product = Areas & {
  /** The ISO that `--reset` gives back. */
  readonly built: string;
  /** Place of what the build left: a file, the archive in the Ignition area, or nothing but that area. */
  readonly copy: 'file' | 'archive' | 'none';
};

const AS_BUILT = { ignition: 'as built', kargs: 'as built' } as const;
const CUSTOMIZED = { ignition: 'customized', kargs: 'customized' } as const;

const PRODUCTS: Readonly<Record<string, Product>> = {
  'live.iso': { built: 'live.iso', copy: 'file', ...AS_BUILT },
  'built.iso': { built: 'built.iso', copy: 'file', ...AS_BUILT },
  'custom.iso': { built: 'built.iso', copy: 'file', ...CUSTOMIZED },
  'grown.iso': { built: 'grown.iso', copy: 'file', ...AS_BUILT },
  'ibi.iso': { built: 'ibi.iso', copy: 'none', ...AS_BUILT },
  'site.iso': { built: 'ibi.iso', copy: 'archive', ...CUSTOMIZED },
};

/** Products whose built kernel arguments are not those of the base. */
const WITH_KARGS = ['built.iso', 'custom.iso'];

type Verb = Partial<Areas> & {
  readonly args: readonly string[];
  /** True if the Ignition area loses all that it had. */
  readonly isErasing?: boolean;
  /** True if the ISO lacks what it needs to boot and install. */
  readonly isBroken?: boolean;
};

const KEYFILE = ['-k', 'eth0.nmconnection'];
const FORCE = ['iso', 'customize', '--force'];

/** Verbs of coreos-installer, and the areas that they leave; an absent area stays as it was. */
const VERBS: Readonly<Record<string, Verb>> = {
  'ignition embed': { args: ['iso', 'ignition', 'embed', '-i', 'new.ign'] },
  'ignition embed --force': {
    args: ['iso', 'ignition', 'embed', '--force', '-i', 'new.ign'],
    ignition: 'replaced',
  },
  'ignition remove': { args: ['iso', 'ignition', 'remove'], ignition: 'removed' },
  'network embed --force': {
    args: ['iso', 'network', 'embed', '--force', ...KEYFILE],
    ignition: 'customized',
  },
  'network remove': { args: ['iso', 'network', 'remove'], ignition: 'customized' },
  'kargs modify --append': {
    args: ['iso', 'kargs', 'modify', '--append', 'a=b'],
    kargs: 'customized',
  },
  'kargs modify --replace': {
    args: ['iso', 'kargs', 'modify', '--replace', 'ignition.platform.id=metal=qemu'],
    kargs: 'customized',
  },
  'kargs modify --delete': {
    args: ['iso', 'kargs', 'modify', '--delete', 'ignition.firstboot'],
    kargs: 'customized',
    isBroken: true,
  },
  'kargs reset': { args: ['iso', 'kargs', 'reset'], kargs: 'bare' },
  'customize': { args: ['iso', 'customize', '--dest-device', '/dev/vda'] },
  'customize --force': {
    args: [...FORCE, '--dest-device', '/dev/vda', '--network-keyfile', 'eth0.nmconnection'],
    ignition: 'replaced',
    isErasing: true,
  },
  'customize --live-ignition': {
    args: [...FORCE, '--live-ignition', 'small.ign', '--live-karg-append', 'a=b'],
    ignition: 'replaced',
    kargs: 'customized',
    isErasing: true,
  },
  'customize --live-karg-append': {
    args: [...FORCE, '--live-karg-append', 'a=b'],
    ignition: 'removed',
    kargs: 'customized',
    isErasing: true,
  },
  'reset': { args: ['iso', 'reset'], ignition: 'removed', kargs: 'bare', isErasing: true },
};

const NOTHING: Product = { built: '', copy: 'none', ...AS_BUILT };

const CASES = Object.keys(PRODUCTS).flatMap((product) =>
  Object.keys(VERBS).map((verb) => [verb, product] as const),
);

describe.skipIf(judge === undefined)('a product of sealift under coreos-installer', () => {
  let world: JudgeWorld;
  const sums = new Map<string, string>();
  beforeAll(async () => {
    world = await createJudgeWorld();
    await makeProducts(world);
    for (const name of Object.keys(PRODUCTS)) sums.set(name, await world.sumOf(name));
  });
  afterAll(() => world.close());

  test.each(CASES)('says after "%s" of %s what is true, and is reset', async (name, product) => {
    const { built, copy, ...start } = PRODUCTS[product] ?? NOTHING;
    const { args, isBroken = false, isErasing = false, ...left } = VERBS[name] ?? { args: [] };
    const about = `${product}, ${name}`;
    await copyFile(world.at(product), world.at('x.iso'));
    const { done } = world.ask(...args, 'x.iso');
    comparer.requireAgreement(`${about}: done`, Object.keys(left).length > 0, done);
    await world.requireSameShown('x.iso', about, comparer);

    const kargs = left.kargs === 'bare' && !WITH_KARGS.includes(product) ? 'as built' : left.kargs;
    const areas = { ...start, ...left, ...(kargs && { kargs }) };
    const isLost = areas.ignition === 'replaced' || areas.ignition === 'removed';
    const unbroken = areas.kargs === 'customized' ? 'not provable' : 'whole';
    const shown = await world.verify('x.iso');
    expect({ state: shown.state, areas: statesOf(shown.areas ?? []) }).toEqual({
      state: isLost || isBroken ? 'damaged' : unbroken,
      areas,
    });
    expect(shown.customised).toBe(areas.ignition !== 'as built' || areas.kargs !== 'as built');

    const isSame = readByJudge(product) === readByJudge('x.iso');
    expect(await exitOf('diff', '--exit-code', product, 'x.iso')).toBe(isSame ? 0 : 8);
    expect(await exitOf('inspect', 'x.iso')).toBe(0);
    const { exitCode, stderr } = await world.run('customize', 'x.iso', '--reset', '--in-place');
    if (isLost && (copy === 'none' || (copy === 'archive' && isErasing))) {
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[customize.no-built]')]);
    } else {
      expect([exitCode, stderr]).toEqual([0, '']);
      expect(await world.sumOf('x.iso')).toBe(sums.get(built));
    }
  });

  test.each(Object.keys(PRODUCTS))('%s gives the same parts to both programs', async (product) => {
    const stem = product.replace(/\.iso$/, '');
    for (const [part, ...theirs] of [
      ['minimal-iso', product, `${stem}-minimal.iso`],
      ['pxe', '--output-dir', `theirs-${stem}`, product],
    ] as const) {
      const { done } = world.ask('iso', 'extract', part, ...theirs);
      const ours = await world.did('extract', part, product, '--out', `ours-${stem}`);
      comparer.requireAgreement(`${product}: ${part}`, ours, done);
      if (ours)
        expect(await world.sumsBelow(`ours-${stem}`)).toEqual(
          await world.sumsBelow(`theirs-${stem}`),
        );
    }
  });

  const exitOf = async (...args: readonly string[]): Promise<number> =>
    (await world.run(...args)).exitCode;

  /** All that the judge shows of an ISO. */
  const readByJudge = (name: string): string =>
    [
      ['ignition', 'show'],
      ['network', 'extract'],
      ['kargs', 'show'],
    ]
      .map((verb) => world.ask('iso', ...verb, name).stdout)
      .join('\n');

  test('have no listed difference that no comparison meets', () => {
    expect(comparer.listUnused()).toEqual([]);
  });
});

/** The state of each kind of area; areas of one kind are changed together. */
function statesOf(
  areas: readonly { readonly kind: string; readonly state: string }[],
): Readonly<Record<string, string>> {
  const of = (wanted: string): string =>
    [...new Set(areas.flatMap(({ kind, state }) => (kind === wanted ? [state] : [])))].join();
  return { ignition: of('ignition'), kargs: of('kernel-arguments') };
}
