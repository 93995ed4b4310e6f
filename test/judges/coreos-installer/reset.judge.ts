import { copyFile, rm } from 'node:fs/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TEST_SSH_KEY } from '../../support/installation-iso.ts';
import { runs } from '../../support/properties.ts';
import { createJudgeWorld, judge, type JudgeWorld, makeProducts } from './world.ts';

const CONFIGS = ['small.ign', 'new.ign', 'dest.ign'];
const oneOf = (...texts: readonly string[]): fc.Arbitrary<string> => fc.constantFrom(...texts);
const flag = (text: string): fc.Arbitrary<readonly string[]> => oneOf('', text).map(split);
const split = (text: string): readonly string[] => (text === '' ? [] : text.split(' '));

/** Arguments of an option, now and then. */
const some = (name: string, values: readonly string[]): fc.Arbitrary<readonly string[]> =>
  oneOf('', ...values).map((value) => (value === '' ? [] : [name, value]));

const joined = (
  ...parts: readonly fc.Arbitrary<readonly string[]>[]
): fc.Arbitrary<readonly string[]> => fc.tuple(...parts).map((lists) => lists.flat());

const words = (text: string): fc.Arbitrary<readonly string[]> => fc.constant(split(text));

const KARGS = ['a=b', 'c=d', 'quiet', 'ignition.platform.id=metal', 'ignition.firstboot'];
const CHANGES = ['a=b=c', 'ignition.platform.id=metal=qemu'];
const editKargs = (prefix: string): fc.Arbitrary<readonly string[]> =>
  joined(
    some(`--${prefix}append`, KARGS),
    some(`--${prefix}delete`, KARGS),
    some(`--${prefix}replace`, CHANGES),
  );

/** A change by one of the programs; the ISO is named behind the arguments. */
type Change = { readonly by: 'judge' | 'sealift'; readonly args: readonly string[] };
const by = (who: Change['by'], args: fc.Arbitrary<readonly string[]>): fc.Arbitrary<Change> =>
  args.map((args) => ({ by: who, args }));

/** Verbs of coreos-installer that take the whole archive out of the Ignition area, or the config in it. */
const ERASING = [
  joined(words('iso ignition embed -i'), oneOf(...CONFIGS).map(split), flag('--force')),
  words('iso ignition remove'),
  joined(
    ...[words('iso customize'), flag('--force'), some('--live-ignition', CONFIGS)],
    ...[some('--dest-device', ['/dev/vda']), some('--network-keyfile', ['eth0.nmconnection'])],
    ...[editKargs('live-karg-'), some('--dest-ignition', CONFIGS)],
  ),
  words('iso reset'),
].map((args) => by('judge', args));

/** Both programs may refuse any of these. `--reset=bare` is absent: it takes the copy of the build off. */
const OTHERS = [
  by('judge', joined(words('iso network embed -k eth0.nmconnection'), flag('--force'))),
  by('judge', words('iso network remove')),
  by('judge', joined(words('iso kargs modify'), editKargs(''))),
  by('judge', words('iso kargs reset')),
  by('sealift', joined(words('customize'), editKargs('kargs-'))),
  by('sealift', words('customize --reset')),
  by(
    'sealift',
    joined(
      ...[words('customize'), flag('--force'), some('--ssh-key', [TEST_SSH_KEY])],
      ...[some('--ntp', ['ntp.example', '192.0.2.1']), some('--trust-bundle', ['ca.pem'])],
      ...[some('--network-keyfile', ['eth0.nmconnection']), some('--live-ignition', CONFIGS)],
      ...[some('--proxy', ['http://p.example:3128']), editKargs('kargs-')],
    ),
  ),
];

const listsOf = (changes: readonly fc.Arbitrary<Change>[]): fc.Arbitrary<readonly Change[]> =>
  fc.array(fc.oneof(...changes), { minLength: 20, maxLength: 20 });

describe.skipIf(judge === undefined)(
  'after 20 customisations by coreos-installer and sealift',
  () => {
    let world: JudgeWorld;
    beforeAll(async () => {
      world = await createJudgeWorld();
      await makeProducts(world);
    });
    afterAll(() => world.close());

    const change = async ({ by, args }: Change): Promise<boolean> =>
      by === 'judge' ? world.ask(...args, 'x.iso').done : world.did(...args, 'x.iso', '--in-place');

    /** Customises a copy, at least once. */
    async function customise(product: string, changes: readonly Change[]): Promise<void> {
      await rm(world.at('x.iso'), { force: true });
      await copyFile(world.at(product), world.at('x.iso'));
      for (const each of changes) await change(each);
    }

    const reset = () => world.run('customize', 'x.iso', '--reset', '--in-place');

    test.each([
      ['a live ISO with values of the build', 'built.iso', [...ERASING, ...OTHERS]],
      ['an installation ISO with images', 'grown.iso', [...ERASING, ...OTHERS]],
      ['an installation ISO without images, whose archive stays', 'ibi.iso', OTHERS],
    ])('%s is reset to the built bytes', async (_what, product, verbs) => {
      const built = await world.sumOf(product);
      await fc.assert(
        fc.asyncProperty(listsOf(verbs), async (changes) => {
          await customise(product, changes);
          expect((await reset()).stderr).toBe('');
          expect(await world.sumOf('x.iso')).toBe(built);
        }),
        { numRuns: runs(3) },
      );
    });

    test('an installation ISO without images is reset to the built bytes, or says that it lacks them', async () => {
      const built = await world.sumOf('ibi.iso');
      await fc.assert(
        fc.asyncProperty(listsOf([...ERASING, ...OTHERS]), async (changes) => {
          await customise('ibi.iso', changes);
          const { ok } = await world.verify('x.iso');
          const { exitCode, stderr } = await reset();
          if (exitCode === 0) expect(await world.sumOf('x.iso')).toBe(built);
          else
            expect([ok, stderr]).toEqual([false, expect.stringContaining('[customize.no-built]')]);
        }),
        { numRuns: runs(3) },
      );
    });
  },
);
