import { copyFile, readFile, rm } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectDone } from '../../support/two-nights.ts';
import { createComparer } from '../find-judge.ts';
import { DIFFERENCES } from './differences.ts';
import { readMeaning } from './meaning.ts';
import { createJudgeWorld, judge, type JudgeWorld, makeBases, makeMinimal } from './world.ts';

const { requireAgreement, listUnused } = createComparer(DIFFERENCES);

/** Options of both programs, by name; the files are those of `inputs.json`. */
const SAME: Readonly<Record<string, readonly string[]>> = {
  'live Ignition 3.2.0': ['--live-ignition', 'small.ign'],
  'live Ignition 3.4.0': ['--live-ignition', 'new.ign'],
  'destination Ignition': ['--dest-ignition', 'dest.ign'],
  'two destination Ignition configs': ['--dest-ignition', 'dest.ign', '--dest-ignition', 'new.ign'],
  'destination device': ['--dest-device', '/dev/vda'],
  'destination console': ['--dest-device', '/dev/vda', '--dest-console', 'ttyS0,115200n8'],
  'short destination console': ['--dest-console', 'ttyAMA1', '--dest-console', 'tty0'],
  'odd destination console': ['--dest-console', 'ttyUSB0'],
  'destination kernel arguments': [
    ...['--dest-device', '/dev/vda', '--dest-karg-append', 'foo=1', '--dest-karg-delete', 'quiet'],
    ...['--dest-karg-append', '0x1f', '--dest-karg-append', 'yes', '--dest-karg-append', 'a: "b"'],
  ],
  'network keyfile': ['--network-keyfile', 'eth0.nmconnection'],
  'network keyfile twice': [
    ...['--network-keyfile', 'eth0.nmconnection', '--network-keyfile', 'eth0.nmconnection'],
  ],
  'Ignition CA': ['--ignition-ca', 'ca.pem'],
  'pre-install script': ['--pre-install', 'pre.sh'],
  'pre-install script twice': ['--pre-install', 'pre.sh', '--pre-install', 'pre.sh'],
  'post-install script': ['--post-install', 'post.sh'],
  'installer config': ['--installer-config', 'inst.yaml'],
  'odd installer config': ['--installer-config', 'eth0.nmconnection'],
  'all': [
    ...['--live-ignition', 'small.ign', '--dest-ignition', 'dest.ign', '--dest-device', '/dev/vda'],
    ...['--network-keyfile', 'eth0.nmconnection', '--ignition-ca', 'ca.pem'],
    ...['--pre-install', 'pre.sh', '--post-install', 'post.sh'],
    ...['--installer-config', 'inst.yaml'],
  ],
};

/** Verdict of an ISO of another maker in which nothing is wrong. */
const UNPROVEN = ['not provable', 'no proof'];

/** ISOs of which every option is asked, one for each set of features. Of the others, the last two are. */
const ASKED_ALL = ['test.iso', 'demo.iso', 'embed-areas-2020-09.iso', 'embed-areas-2022-09.iso'];

const listOptions = (name: string): readonly (readonly [string, readonly string[]])[] =>
  ASKED_ALL.includes(name) ? Object.entries(SAME) : Object.entries(SAME).slice(-2);

/** Kernel arguments, in the words of `iso kargs modify`. */
const KARGS: Readonly<Record<string, readonly string[]>> = {
  'append one': ['append', 'foo=1'],
  'append what is there': ['append', 'ignition.firstboot'],
  'delete one': ['delete', 'ignition.firstboot'],
  'delete what is absent': ['delete', 'nothing'],
  'delete, append and replace': [
    ...['append', 'a=b', 'delete', 'ignition.firstboot', 'replace', 'a=b=c'],
    ...['replace', 'ignition.platform.id=metal=qemu'],
  ],
  'replace what is absent': ['replace', 'x=y=z'],
  'replace in another form': ['replace', 'x=y'],
};

describe.skipIf(judge === undefined)('coreos-installer and sealift', () => {
  let world: JudgeWorld;
  const sums = new Map<string, string>();
  beforeAll(async () => {
    world = await createJudgeWorld();
    const bases = await makeBases(world);
    await makeMinimal(world);
    await world.writeConfig();
    await expectDone(world, 'build', '--output', 'live.iso');
    for (const name of [...bases, 'live.iso', 'minimal.iso']) sums.set(name, await sumOf(name));
  });
  afterAll(() => world.close());
  beforeEach(() =>
    Promise.all(['ours.iso', 'theirs.iso'].map((name) => rm(at(name), { force: true }))),
  );

  const at = (name: string): string => world.at(name);
  const sumOf = (name: string): Promise<string> => world.sumOf(name);
  const ask: JudgeWorld['ask'] = (...args) => world.ask(...args);
  const did: JudgeWorld['did'] = (...args) => world.did(...args);

  const copies = async (name: string): Promise<void> => {
    await copyFile(at(name), at('ours.iso'));
    await copyFile(at(name), at('theirs.iso'));
  };

  const media = (): readonly string[] => [...sums.keys()];
  const isCoreos = (name: string): boolean => name !== 'synthetic.iso';

  test('show the same kernel arguments, Ignition config and networks of every ISO', async () => {
    for (const name of media().filter(isCoreos)) {
      await world.requireSameShown(name, name, { requireAgreement });
    }
  });

  test('change kernel arguments to the same bytes, whatever is in the Ignition area', async () => {
    for (const name of media().filter(isCoreos)) {
      for (const [change, words] of Object.entries(KARGS)) {
        await copies(name);
        const flags = words.map((word, at) => (at % 2 === 0 ? `--${word}` : word));
        const own = words.map((word, at) => (at % 2 === 0 ? `--kargs-${word}` : word));
        const { done } = ask('iso', 'kargs', 'modify', ...flags, 'theirs.iso');
        const ours = await did('customize', 'ours.iso', ...own, '--in-place');
        requireAgreement(`${name}: ${change}`, ours, done);
        const same = (await sumOf('ours.iso')) === (await sumOf('theirs.iso'));
        requireAgreement(`${name}: bytes of ${change}`, same, true);
      }
    }
  });

  test('append an argument a second time, which one of them moves to the end', async () => {
    await copies('test.iso');
    for (const karg of ['a=b', 'c=d', 'a=b']) {
      expect(ask('iso', 'kargs', 'modify', '--append', karg, 'theirs.iso').done).toBe(true);
      await expectDone(world, 'customize', 'ours.iso', '--kargs-append', karg, '--in-place');
    }
    const [ours, theirs] = ['ours.iso', 'theirs.iso'].map((iso) =>
      ask('iso', 'kargs', 'show', iso),
    );
    expect(ours?.stdout).toMatch(/=metal c=d a=b$/m);
    requireAgreement('an argument appended in two runs', ours?.stdout, theirs?.stdout);
  });

  test('write the same config for the same options, refuse the same, and reset to the same', async () => {
    for (const name of media().filter((name) => isCoreos(name) && name !== 'live.iso')) {
      for (const [option, flags] of listOptions(name)) {
        await copies(name);
        const { done } = ask('iso', 'customize', ...flags, 'theirs.iso');
        const ours = await did('customize', 'ours.iso', ...flags, '--in-place');
        requireAgreement(`${name}: ${option}`, ours, done);
        if (!ours || !done) continue;
        const { state, because } = await world.verify('theirs.iso');
        expect([name, option, state, because]).toEqual([name, option, ...UNPROVEN]);
        for (const verb of [
          ['ignition', 'show'],
          ['network', 'extract'],
          ['kargs', 'show'],
        ]) {
          const [one, other] = ['ours.iso', 'theirs.iso'].map((iso) => ask('iso', ...verb, iso));
          const read = verb[0] === 'ignition' ? readMeaning : String;
          requireAgreement(
            `${option}: ${verb.join(' ')}`,
            read(one?.stdout ?? ''),
            read(other?.stdout ?? ''),
          );
        }
        const texts = ['ours.iso', 'theirs.iso'].map(
          (iso) => ask('iso', 'ignition', 'show', iso).stdout,
        );
        const isSame =
          (await world.run('diff', '--exit-code', 'ours.iso', 'theirs.iso')).exitCode === 0;
        expect(isSame, option).toBe(texts[0] === texts[1]);
        expect((await world.run('diff', '--exit-code', 'ours.iso', name)).exitCode).toBe(8);
        ask('iso', 'reset', 'ours.iso');
        await expectDone(world, 'customize', 'theirs.iso', '--reset', '--in-place');
        expect([await sumOf('ours.iso'), await sumOf('theirs.iso')]).toEqual(
          Array.from({ length: 2 }, () => sums.get(name)),
        );
      }
    }
  });

  test('embed, show and remove configs and networks of each other', async () => {
    for (const name of ['test.iso', 'demo.iso', 'live.iso']) {
      await copies(name);
      const force = name === 'live.iso' ? ['--force'] : [];
      expect(ask('iso', 'ignition', 'embed', ...force, '-i', 'new.ign', 'theirs.iso').done).toBe(
        true,
      );
      const { stdout } = await expectDone(world, 'ignition', 'show', 'theirs.iso');
      expect(readMeaning(stdout)).toEqual(readMeaning(await readFile(at('new.ign'), 'utf8')));
      expect(ask('iso', 'network', 'embed', '-k', 'eth0.nmconnection', 'theirs.iso').done).toBe(
        true,
      );
      expect((await world.show('theirs.iso')).ignition.networkFiles).toEqual(['eth0.nmconnection']);
      await expectDone(world, 'customize', 'theirs.iso', '--kargs-append', 'a=b', '--in-place');
      expect(ask('iso', 'kargs', 'show', 'theirs.iso').stdout).toMatch(/ a=b$/m);
      expect(ask('iso', 'network', 'remove', 'theirs.iso').done).toBe(true);
      expect((await world.show('theirs.iso')).ignition.networkFiles).toEqual([]);
      expect(ask('iso', 'ignition', 'remove', 'theirs.iso').done).toBe(true);
      expect((await world.run('diff', '--exit-code', 'theirs.iso', name)).exitCode).toBe(8);
      expect(ask('iso', 'kargs', 'reset', 'theirs.iso').done).toBe(true);
      await expectDone(world, 'customize', 'theirs.iso', '--reset', '--in-place');
      expect(await sumOf('theirs.iso'), name).toBe(sums.get(name));
    }
  });

  test('extract the same minimal ISO and the same files for network boot', async () => {
    for (const name of media()) {
      const stem = name.replace(/\.iso$/, '');
      for (const flags of [[], ['--rootfs-url', 'https://media.example/rootfs.img']]) {
        const theirs = ask('iso', 'extract', 'minimal-iso', ...flags, name, 'theirs.iso').done;
        const ours = await did('extract', 'minimal-iso', name, '--out', 'min', '--force', ...flags);
        requireAgreement(`${name}: minimal-iso`, ours, theirs);
        if (!ours || !theirs) continue;
        expect(await sumOf(`min/${stem}-minimal.iso`), name).toBe(await sumOf('theirs.iso'));
        await rm(at('theirs.iso'));
      }
      const theirs = ask('iso', 'extract', 'pxe', '--output-dir', `theirs-${stem}`, name);
      const ours = await did('extract', 'pxe', name, '--out', `ours-${stem}`);
      requireAgreement(`${name}: pxe`, ours, theirs.done);
      if (!ours) continue;
      const own = await world.sumsBelow(`ours-${stem}`);
      expect(own, name).toEqual(await world.sumsBelow(`theirs-${stem}`));
    }
  });

  test('have no listed difference that no comparison meets', () => {
    expect(listUnused()).toEqual([]);
  });
});
