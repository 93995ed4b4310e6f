import { copyFileSync } from 'node:fs';
import { copyFile, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TEST_CERTIFICATE, TEST_SSH_KEY } from '../../support/installation-iso.ts';
import { createComparer } from '../find-judge.ts';
import {
  createJudgeWorld,
  judge,
  type JudgeWorld,
  makeBases,
  makeMinimal,
  makeProducts,
} from './world.ts';

const comparer = createComparer({}); // no difference is on purpose

const OTHER_KEY = TEST_SSH_KEY.replace(/ [^ ]*$/, ' other@host');

const KEYFILE = ['-k', 'eth0.nmconnection'];

/** Part of an ISO that an option needs. */
type Need = 'kernel arguments' | 'networks' | 'agents' | 'no seed image';

/** Every option of `customize` that coreos-installer does not have, and the values of both. */
const OPTIONS: Readonly<Record<string, { readonly args: readonly string[]; needs?: Need }>> = {
  'an SSH key': { args: ['--ssh-key', OTHER_KEY] },
  'a pull secret': { args: ['--pull-secret', 'file:secret.json'], needs: 'no seed image' },
  'time servers': { args: ['--ntp', 'ntp.example', '--ntp', '192.0.2.1'] },
  'a proxy': { args: ['--proxy', 'http://p.example:3128', '--no-proxy', '.example'] },
  'a trust bundle': { args: ['--trust-bundle', 'bundle.pem'] },
  'an Ignition override': { args: ['--ignition-override', 'small.ign'] },
  'a network': { args: ['--nmstate', 'net.yaml'], needs: 'networks' },
  'an InfraEnv': { args: ['--infraenv', 'infra.yaml'], needs: 'kernel arguments' },
  'kernel arguments': { args: ['--kargs-append', 'a=b'], needs: 'kernel arguments' },
  'a host name': { args: ['--hostname', '52:54:00:00:00:01=a'], needs: 'agents' },
  'a rendezvous address': { args: ['--rendezvous-ip', '192.0.2.1'], needs: 'agents' },
};

/** Options that are asked of every base ISO: one for each part of an ISO. */
const ASKED_OF_ALL = ['an SSH key', 'a network', 'an InfraEnv'];

const PRODUCTS = ['live.iso', 'built.iso', 'grown.iso', 'ibi.iso'];

const NET = 'interfaces: [{name: eth0, type: ethernet, ipv4: {enabled: true, dhcp: true}}]\n';
const INFRA =
  'kind: InfraEnv\nspec: {additionalNTPSources: [n.example], kernelArguments: [{operation: append, value: quiet}]}\n';

describe.skipIf(judge === undefined)('an ISO that sealift customised', () => {
  let world: JudgeWorld;
  const sums = new Map<string, string>();
  beforeAll(async () => {
    world = await createJudgeWorld();
    const bases = (await makeBases(world)).filter((name) => name !== 'synthetic.iso');
    await makeProducts(world);
    await makeMinimal(world);
    await writeFile(world.at('secret.json'), '{"auths":{"quay.io":{"auth":"YTpi"}}}');
    await writeFile(world.at('bundle.pem'), TEST_CERTIFICATE);
    await writeFile(world.at('net.yaml'), NET);
    await writeFile(world.at('infra.yaml'), INFRA);
    for (const name of [...bases, ...PRODUCTS, 'minimal.iso']) {
      sums.set(name, await world.sumOf(name));
    }
  });
  afterAll(() => world.close());

  /** True if the judge finds on the ISO what an option needs. */
  const has: Readonly<Record<Need, (name: string) => boolean>> = {
    'agents': () => false,
    'no seed image': (name) => !['grown.iso', 'ibi.iso'].includes(name),
    'kernel arguments': (name) => world.ask('iso', 'kargs', 'show', name).done,
    'networks': (name) => {
      copyFileSync(world.at(name), world.at('y.iso'));
      return world.ask('iso', 'network', 'embed', ...KEYFILE, 'y.iso').done;
    },
  };

  const exitOf = async (...args: readonly string[]): Promise<number> =>
    (await world.run(...args)).exitCode;

  /** Customises a copy and requires that both programs see the same. @returns false if sealift refused */
  async function customise(name: string, option: string): Promise<boolean> {
    const { args, needs } = OPTIONS[option] ?? { args: [] };
    await copyFile(world.at(name), world.at('x.iso'));
    const done = await world.did('customize', 'x.iso', ...args, '--in-place');
    expect(done, `${name}: ${option}`).toBe(needs === undefined || has[needs](name));
    await world.requireSameShown('x.iso', `${name}, ${option}`, comparer);
    expect(await exitOf('diff', '--exit-code', name, 'x.iso')).toBe(done ? 8 : 0);
    expect(await exitOf('inspect', 'x.iso')).toBe(0);
    return done;
  }

  test.each(Object.keys(OPTIONS))(
    'of another maker with %s shows it, and either program resets it',
    async (option) => {
      const others = [...sums.keys()].filter((name) => !PRODUCTS.includes(name));
      const asked = ASKED_OF_ALL.includes(option) ? others : ['test.iso', 'minimal.iso'];
      for (const name of asked) {
        const done = await customise(name, option);
        const { state, because } = await world.verify('x.iso');
        expect([name, state, because]).toEqual([name, 'not provable', 'no proof']);
        expect((await world.show('x.iso')).customised).toBe(done);
        await copyFile(world.at('x.iso'), world.at('y.iso'));
        expect(world.ask('iso', 'reset', 'y.iso').done).toBe(true);
        const reset = option === 'an SSH key' ? '--reset=bare' : '--reset';
        expect(await exitOf('customize', 'x.iso', reset, '--in-place')).toBe(0);
        expect([name, await world.sumOf('x.iso'), await world.sumOf('y.iso')]).toEqual([
          name,
          sums.get(name),
          sums.get(name),
        ]);
      }
    },
  );

  test.each(Object.keys(OPTIONS))(
    'of sealift with %s shows it, is no damage, and is reset',
    async (option) => {
      for (const name of PRODUCTS) {
        const done = await customise(name, option);
        const { ok, customised } = await world.verify('x.iso');
        expect([name, ok, customised]).toEqual([name, true, done]);
        expect(await exitOf('customize', 'x.iso', '--reset', '--in-place')).toBe(0);
        expect(await world.sumOf('x.iso')).toBe(sums.get(name));
      }
    },
  );

  test.each(PRODUCTS)('%s without any values is what both programs show', async (name) => {
    await copyFile(world.at(name), world.at('x.iso'));
    expect(await exitOf('customize', 'x.iso', '--reset=bare', '--in-place')).toBe(0);
    await world.requireSameShown('x.iso', `${name}, --reset=bare`, comparer);
    expect((await world.verify('x.iso')).state).toBe('whole');
  });

  test('that has no areas is refused by both programs', async () => {
    for (const args of [
      ['ignition', 'embed', '-i', 'new.ign'],
      ['ignition', 'show'],
      ['network', 'embed', ...KEYFILE],
      ['kargs', 'show'],
      ['customize', '--dest-device', '/dev/vda'],
      ['reset'],
    ]) {
      expect(world.ask('iso', ...args, 'upgrade.iso').done, args.join(' ')).toBe(false);
    }
    for (const args of [['--ssh-key', TEST_SSH_KEY], ['--kargs-append', 'a=b'], ['--reset']]) {
      expect(await world.did('customize', 'upgrade.iso', ...args, '--in-place')).toBe(false);
    }
    expect((await world.verify('upgrade.iso')).state).toBe('whole');
  });
});
