import { chmod, mkdir, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { ConfigIsosReport } from '../../../src/stages/config-isos.ts';
import type { ListedGeneration } from '../../../src/stages/report/sites.ts';
import {
  ALPHA,
  BAD,
  BETA,
  digestsOf,
  useConfigIsoWorld,
  warningsOf,
} from '../../support/config-iso-fixture.ts';
import { inFolder, siteTree, type ConfigIsoWorld } from '../../support/config-iso-world.ts';
import { openssl, type KeyRing } from '../../support/site-identity.ts';

let keys: KeyRing;
let world: ConfigIsoWorld;
useConfigIsoWorld((made) => {
  ({ world, keys } = made);
});

type More = Partial<Parameters<ConfigIsoWorld['build']>[1]>;
const build = (more: More = {}): Promise<ConfigIsosReport> =>
  world.build(keys, { sites: 'sites', out: 'out', ...more });
const idOf = ({ sites }: ConfigIsosReport): string | undefined => sites[0]?.clusterId;
const use = (clusterName: string, ...imageBased: string[]): void => {
  world.write(inFolder('sites', siteTree('alpha', { number: 1, clusterName, imageBased })));
};

async function readState(): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  for (const file of await readdir(world.at('out/_state'))) {
    if (!/\.\d+\.json$/.test(file)) continue;
    texts.set(file, await readFile(world.at('out/_state', file), 'utf8'));
    expect((await stat(world.at('out/_state', file))).mode & 0o777).toBe(0o600);
  }
  return texts;
}

async function listGenerations(...args: string[]): Promise<readonly ListedGeneration[]> {
  const all = ['alpha', '--out', 'out', '-o', 'json', ...args];
  const { exitCode, stdout } = await world.run('config-iso', 'generations', ...all);
  expect(exitCode).toBe(0);
  return (JSON.parse(stdout) as { generations: readonly ListedGeneration[] }).generations;
}

describe('generations of keys', () => {
  it('all stay when the cluster changes and changes back, and the first is used again', async () => {
    use('one');
    const first = await build();
    const before = await readState();
    use('two');
    const second = await build();
    expect(idOf(second)).not.toBe(idOf(first));
    expect(warningsOf(second)).toEqual([
      'has new keys (generation 2): cluster name, base domain or ids have changed; generation 1 stays',
    ]);
    use('one');
    const third = await build();
    expect(digestsOf(third)).toEqual(digestsOf(first));
    expect(warningsOf(third)).toEqual([
      expect.stringContaining('has the keys of generation 1 again') as unknown,
    ]);
    const after = await readState();
    expect([...after.keys()].sort()).toEqual(['alpha.1.json', 'alpha.2.json']);
    expect(after.get('alpha.1.json')).toBe(before.get('alpha.1.json'));
    const again = await build();
    expect([again.made, again.reused, warningsOf(again)]).toEqual([0, 1, []]);
  });

  it('all stay after two rotations, and each can be used again by its number', async () => {
    world.write(inFolder('sites', ALPHA));
    const reports = [await build(), await build({ rotate: true }), await build({ rotate: true })];
    expect([...(await readState()).keys()].sort()).toEqual([
      ...['alpha.1.json', 'alpha.2.json', 'alpha.3.json'],
    ]);
    expect(new Set(reports.map(idOf)).size).toBe(3);
    for (const [index, report] of reports.entries()) {
      const again = await build({ useGenerations: new Map([['', index + 1]]) });
      expect([digestsOf(again), again.sites[0]?.generation]).toEqual([
        digestsOf(report),
        index + 1,
      ]);
      const without = await build();
      expect([without.made, without.reused, digestsOf(without)]).toEqual([0, 1, digestsOf(report)]);
    }
  });

  it('are used again by number after the cluster changed and changed back', async () => {
    use('one');
    const first = await build();
    await build({ rotate: true });
    await build({ useGenerations: new Map([['alpha', 1]]) });
    use('two');
    await build();
    use('one');
    expect(digestsOf(await build())).toEqual(digestsOf(first));
  });

  it('are used again when the inputs begin to name the ids that were drawn', async () => {
    use('one');
    const first = await build();
    use('one', `cluster_id: ${idOf(first) ?? ''}`);
    expect(idOf(await build())).toBe(idOf(first));
    use('one', 'cluster_id: 11111111-2222-4333-8444-555555555555');
    expect(idOf(await build())).toBe('11111111-2222-4333-8444-555555555555');
    use('one');
    expect(digestsOf(await build())).toEqual(digestsOf(first));
  });

  it.each([
    [7, 'alpha has no generation 7'],
    [2, 'generation 2 of alpha belongs to another cluster than the inputs'],
    [3, 'generation 3 of alpha is damaged'],
  ])('are refused by number if they cannot be used, and other sites go on: %i', async (...row) => {
    const [number, problem] = row;
    use('one');
    await build();
    use('two');
    await build();
    use('one');
    world.write(inFolder('sites', BETA));
    await writeFile(world.at('out/_state/alpha.3.json'), 'half');
    const { failed, sites } = await build({ useGenerations: new Map([['alpha', number]]) });
    expect(sites.map(({ name }) => name)).toEqual(['beta']);
    expect(failed[0]?.findings[0]?.problem).toContain(problem);
    expect(failed[0]?.findings[0]?.problem).toContain('[config-iso.generation]');
  });

  it('need the name of the site if there are several sites', async () => {
    world.write(inFolder('sites', ALPHA, BETA));
    const number = build({ useGenerations: new Map([['', 1]]) });
    await expect(number).rejects.toMatchObject({ code: 'usage.use-generation' });
    const unknown = build({ useGenerations: new Map([['gamma', 1]]) });
    await expect(unknown).rejects.toMatchObject({ code: 'config-iso.unknown-site' });
  });
});

describe('config-iso generations', () => {
  it('lists generations with the fingerprints that openssl computes, and no secret', async () => {
    use('one');
    const first = await build();
    await build({ rotate: true, epoch: 1_800_000_000 });
    const generations = await listGenerations();
    expect(generations.map(({ number, isInUse }) => [number, isInUse])).toEqual([
      [1, false],
      [2, true],
    ]);
    expect(generations[0]?.identity).toMatchObject({
      madeAt: '2026-01-02T03:04:05.000Z',
      clusterName: 'one',
      baseDomain: 'edge.example',
      clusterId: idOf(first),
      infraId: first.sites[0]?.infraId,
    });
    expect(generations[1]?.identity?.madeAt).toBe('2027-01-15T08:00:00.000Z');
    const state = (await readState()).get('alpha.1.json') ?? '';
    const { identity } = JSON.parse(state) as {
      identity: { signers: { ingress: { certificate: string } }; password: { text: string } };
    };
    const pem = identity.signers.ingress.certificate;
    await writeFile(world.at('ingress.pub'), await openssl(['x509', '-pubkey', '-noout'], pem));
    const [inForm, outForm] = [world.at('ingress.pub'), world.at('ingress.der')];
    await openssl(['pkey', '-pubin', '-in', inForm, '-outform', 'der', '-out', outForm]);
    const digest = await openssl(['dgst', '-sha256', '-r', outForm]);
    expect(generations[0]?.identity?.signers['ingress-operator-signer']).toBe(
      `sha256:${digest.slice(0, 64)}`,
    );
    const { stdout } = await world.run('config-iso', 'generations', 'alpha', '--out', 'out');
    expect(stdout).toContain('generation 2, in use\n');
    expect(stdout).toContain(`cluster id   ${idOf(first) ?? ''}`);
    expect(stdout).not.toMatch(/PRIVATE|\$2a\$/);
    expect(stdout).not.toContain(identity.password.text);
  });

  it('lists a damaged generation, and refuses a site without generations', async () => {
    world.write(inFolder('sites', ALPHA));
    await build();
    await truncate(world.at('out/_state/alpha.1.json'), 100);
    expect(await listGenerations()).toEqual([{ number: 1, isInUse: true }]);
    const { exitCode, stderr } = await world.run('config-iso', 'generations', 'x', '--out', 'out');
    expect([exitCode, stderr]).toEqual([3, expect.stringContaining('[config-iso.generation]')]);
  });
});

describe('--new-identity', () => {
  it('makes new keys for the named site only, and the earlier keys stay', async () => {
    world.write(inFolder('sites', ALPHA, BETA));
    const first = await build();
    const second = await build({ newIdentities: new Set(['alpha']) });
    expect([second.made, second.reused]).toEqual([1, 1]);
    expect(second.sites.map(({ generation }) => generation)).toEqual([2, 1]);
    expect(idOf(second)).not.toBe(idOf(first));
    const third = await build();
    expect([third.reused, digestsOf(third)]).toEqual([2, digestsOf(second)]);
  });

  it('does not replace keys twice if other sites are bad', async () => {
    world.write(inFolder('sites', ALPHA, BAD));
    await build();
    await build({ newIdentities: new Set(['alpha', 'gamma']) });
    const again = await build({ newIdentities: new Set(['alpha', 'gamma']) });
    expect(again.sites[0]?.generation).toBe(2);
  });
});

describe('the state directory', () => {
  it('is private to its owner, and has a README', async () => {
    world.write(inFolder('sites', ALPHA));
    await mkdir(world.at('out/_state'), { recursive: true });
    await chmod(world.at('out/_state'), 0o755);
    await build();
    expect((await stat(world.at('out/_state'))).mode & 0o777).toBe(0o700);
    expect(await readFile(world.at('out/_state/README'), 'utf8')).toMatch(/Never publish it/);
  });

  it('has a name that no site can have', async () => {
    world.write(inFolder('sites', siteTree('_state', { clusterName: 'alpha' })));
    const { exitCode, stderr } = await world.run('config-iso', 'validate', 'sites');
    expect([exitCode, stderr]).toEqual([3, expect.stringContaining('is not a DNS label')]);
  });
});

describe('the state that an earlier version left in .sealift', () => {
  /** Puts the state of a build where the earlier version had it, with a generation put aside. */
  async function leaveOldState(): Promise<ConfigIsosReport> {
    world.write(inFolder('sites', ALPHA));
    await build();
    const report = await build({ rotate: true });
    const state = (name: string): string => world.at('out/_state', name);
    await mkdir(world.at('out/.sealift'), { mode: 0o700 });
    const moves = { 'alpha.1': 'alpha.before', 'alpha.2': 'alpha', 'alpha.made': 'alpha.made' };
    for (const [from, to] of Object.entries(moves)) {
      const text = await readFile(state(`${from}.json`));
      await writeFile(world.at('out/.sealift', `${to}.json`), text, { mode: 0o600 });
    }
    await rm(world.at('out/_state'), { recursive: true });
    return report;
  }

  it('moves to _state with every generation, and nothing is made again', async () => {
    const before = await leaveOldState();
    const texts = [
      await readFile(world.at('out/.sealift/alpha.before.json'), 'utf8'),
      await readFile(world.at('out/.sealift/alpha.json'), 'utf8'),
    ];
    expect((await listGenerations()).map(({ number, isInUse }) => [number, isInUse])).toEqual([
      [1, false],
      [2, true],
    ]);
    const after = await build();
    expect([after.made, after.reused, digestsOf(after)]).toEqual([0, 1, digestsOf(before)]);
    expect([...(await readState()).values()].sort()).toEqual(texts.sort());
    expect(await readdir(world.at('out'))).not.toContain('.sealift');
  });

  it('moves out of a folder that a live ISO also uses', async () => {
    await leaveOldState();
    await mkdir(world.at('out/.sealift/cache'));
    await build();
    expect(await readdir(world.at('out/.sealift'))).toEqual(['cache']);
  });

  it('is moved once if a move was killed halfway', async () => {
    const before = await leaveOldState();
    await mkdir(world.at('out/_state'));
    const first = await readFile(world.at('out/.sealift/alpha.before.json'));
    await writeFile(world.at('out/_state/alpha.1.json'), first, { mode: 0o600 });
    const after = await build();
    expect([after.reused, digestsOf(after)]).toEqual([1, digestsOf(before)]);
    expect([...(await readState()).keys()].sort()).toEqual(['alpha.1.json', 'alpha.2.json']);
  });
});
