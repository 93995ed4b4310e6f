import { copyFile, mkdir, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { chownSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { ConfigIsosReport } from '../../../src/stages/config-isos.ts';
import {
  ALPHA,
  BETA,
  digestsOf,
  useConfigIsoWorld,
  warningsOf,
} from '../../support/config-iso-fixture.ts';
import {
  inFolder,
  manifestOf,
  siteTree,
  type ConfigIsoWorld,
} from '../../support/config-iso-world.ts';
import { isRoot, NOBODY } from '../../support/as-user.ts';
import { openssl, type KeyRing } from '../../support/site-identity.ts';

let keys: KeyRing;
let world: ConfigIsoWorld;
useConfigIsoWorld((made) => {
  ({ world, keys } = made);
});

type More = Partial<Parameters<ConfigIsoWorld['build']>[1]>;
const build = (more: More = {}): Promise<ConfigIsosReport> =>
  world.build(keys, { sites: 'sites', out: 'out', epoch: 1_780_000_000, ...more });
const loseState = (): Promise<void> => rm(world.at('out/_state'), { recursive: true });
const FILES = ['alpha.iso', 'alpha/auth/kubeconfig', 'alpha/auth/kubeadmin-password'];
const readFiles = (): Promise<Buffer[]> =>
  Promise.all(FILES.map((file) => readFile(world.at('out', file))));

const TAKEN_BACK =
  'has the keys that were on it before: _state had none, and they were taken back from the ISO, kubeconfig and password as generation 1';

describe('an identity whose state is lost', () => {
  it('is restored from ISO, kubeconfig and password, and not a byte of them changes', async () => {
    world.write(inFolder('sites', ALPHA, BETA));
    const first = await build();
    const files = await readFiles();
    await loseState();
    const handedOut = keys.handedOut();
    const second = await build({ epoch: 1_790_000_000 });
    expect([second.failed, second.made, second.reused]).toEqual([[], 0, 2]);
    expect(digestsOf(second)).toEqual(digestsOf(first));
    expect(warningsOf(second)).toEqual([TAKEN_BACK, TAKEN_BACK]);
    expect(await readFiles()).toEqual(files);
    expect(keys.handedOut()).toBe(handedOut);
    const third = await build();
    expect([third.made, third.reused, warningsOf(third)]).toEqual([0, 2, []]);
  });

  it('is used after that as if it had never been lost', async () => {
    world.write(inFolder('sites', ALPHA));
    const first = await build();
    const kubeconfig = await readFile(world.at('out', FILES[1] ?? ''));
    await loseState();
    world.write({ 'sites/alpha/extra-manifests/b.yaml': manifestOf('B') });
    const changed = await build();
    expect([changed.made, changed.sites[0]?.clusterId]).toEqual([1, first.sites[0]?.clusterId]);
    expect(await readFile(world.at('out', FILES[1] ?? ''))).toEqual(kubeconfig);
    await rm(world.at('sites/alpha/extra-manifests/b.yaml'));
    expect(digestsOf(await build())).toEqual(digestsOf(first));
  });

  it('has certificates that openssl verifies, with their own keys', async () => {
    world.write(inFolder('sites', ALPHA));
    await build();
    await loseState();
    await build();
    const text = await readFile(world.at('out/_state/alpha.1.json'), 'utf8');
    const { identity } = JSON.parse(text) as {
      identity: {
        signers: Record<string, { certificate: string; privateKey?: string }>;
        adminClient: { certificate: string; privateKey: string };
      };
    };
    const { adminKubeconfig, ...serving } = identity.signers;
    expect(adminKubeconfig?.privateKey).toBeUndefined();
    await writeFile(world.at('ca.crt'), adminKubeconfig?.certificate ?? '');
    await writeFile(world.at('client.crt'), identity.adminClient.certificate);
    const at = ['-attime', '1780000000'];
    const verified = ['verify', ...at, '-CAfile', world.at('ca.crt'), world.at('client.crt')];
    expect(await openssl(verified)).toMatch(/: OK$/m);
    for (const { certificate, privateKey } of [...Object.values(serving), identity.adminClient]) {
      const modulus = await openssl(['x509', '-noout', '-modulus'], certificate);
      expect(await openssl(['rsa', '-noout', '-modulus'], privateKey)).toBe(modulus);
    }
  });

  it('is restored if the file of its state is damaged, and that file stays', async () => {
    world.write(inFolder('sites', ALPHA));
    const first = await build();
    await truncate(world.at('out/_state/alpha.1.json'), 1000);
    const second = await build();
    expect([second.reused, digestsOf(second)]).toEqual([1, digestsOf(first)]);
    expect(second.sites[0]?.generation).toBe(2);
    expect(await readdir(world.at('out/_state'))).toContain('alpha.1.json');
  });

  it('becomes its own generation if the inputs are of another cluster now', async () => {
    world.write(inFolder('sites', ALPHA));
    const first = await build();
    await loseState();
    world.write(inFolder('sites', siteTree('alpha', { number: 1, clusterName: 'other' })));
    const second = await build();
    expect(second.sites[0]?.generation).toBe(2);
    world.write(inFolder('sites', ALPHA));
    expect(digestsOf(await build())).toEqual(digestsOf(first));
  });

  it('stays as a generation when it is lost and rotated at once', async () => {
    world.write(inFolder('sites', ALPHA));
    const first = await build();
    await loseState();
    expect((await build({ rotate: true })).sites[0]?.generation).toBe(2);
    const again = await build({ useGenerations: new Map([['alpha', 1]]) });
    expect(digestsOf(again)).toEqual(digestsOf(first));
  });

  it('is restored in the directory of one site, regardless of what made it', async () => {
    world.write({ ...siteTree('alpha', { number: 1 }) });
    const drop = () => build({ sites: 'alpha', out: 'alpha', dropIn: true });
    const first = await drop();
    await rm(world.at('alpha/_state'), { recursive: true });
    const second = await drop();
    expect([second.reused, digestsOf(second)]).toEqual([1, digestsOf(first)]);
  });
});

/** What is done to a site's files so that they do not give its identity back. */
const DAMAGES: readonly (readonly [string, () => Promise<unknown>, string])[] = [
  [
    'the kubeconfig is missing',
    () => rm(world.at('out', FILES[1] ?? '')),
    'kubeconfig does not exist',
  ],
  ['the password is missing', () => rm(world.at('out', FILES[2] ?? '')), 'password does not exist'],
  ['the ISO is missing', () => rm(world.at('out/alpha.iso')), 'alpha.iso does not exist'],
  ['the ISO is cut short', () => truncate(world.at('out/alpha.iso'), 40_000), 'alpha'],
  [
    'the kubeconfig is of another site',
    () => copyFile(world.at('out/beta/auth/kubeconfig'), world.at('out', FILES[1] ?? '')),
    'belongs to another cluster than',
  ],
  [
    'the password is another',
    () => writeFile(world.at('out', FILES[2] ?? ''), 'aaaaa-bbbbb-ccccc-ddddd'),
    'is not the password of',
  ],
  [
    'the kubeconfig has the client of another signer',
    async () => {
      const [alpha, beta] = await Promise.all(
        ['alpha', 'beta'].map((name) => readFile(world.at('out', name, 'auth/kubeconfig'), 'utf8')),
      );
      const clientOf = (text = ''): string => text.slice(text.indexOf('    client-certificate'));
      const mixed = (alpha ?? '').replace(clientOf(alpha), () => clientOf(beta));
      await writeFile(world.at('out', FILES[1] ?? ''), mixed);
    },
    'did not sign the client certificate',
  ],
  [
    'the list has other ids',
    async () => {
      const list = await readFile(world.at('out/sites.json'), 'utf8');
      const ids = /"clusterId": "[^"]*"/;
      await writeFile(world.at('out/sites.json'), list.replace(ids, '"clusterId": "another"'));
    },
    'sites.json has different ids than the ISO',
  ],
];

describe('an identity that is lost and cannot be restored', () => {
  it.runIf(isRoot).each(FILES)(
    'is not replaced by a planted %s of another user, whose keys the cluster would get',
    async (file) => {
      world.write(inFolder('sites', ALPHA));
      await build();
      await loseState();
      const planted = await readFiles();
      chownSync(world.at('out', file), NOBODY, NOBODY);
      await expect(build()).rejects.toMatchObject({ code: 'file.foreign', exitCode: 7 });
      expect(await readFiles()).toEqual(planted);
      expect(await readdir(world.at('out/_state'))).toEqual(['README']);
    },
  );

  it.each(DAMAGES)('refuses its site by name if %s, and other sites go on', async (...row) => {
    const [, damage, problem] = row;
    world.write(inFolder('sites', ALPHA, BETA));
    // Two sites of one key ring have the same keys, but for what is drawn between them.
    await build({ sites: 'sites' });
    await keys.next();
    await build({ newIdentities: new Set(['beta']) });
    await loseState();
    await damage();
    const names = await readdir(world.at('out'), { recursive: true });
    const refused = await build();
    expect(refused.sites.map(({ name }) => name)).toEqual(['beta']);
    const [finding] = refused.failed[0]?.findings ?? [];
    expect(finding?.problem).toMatch(
      /^the keys of alpha are lost: .*\[config-iso\.identity-lost\]$/,
    );
    expect(finding?.problem).toContain(problem);
    expect(finding?.hint).toMatch(/--retain-from.*--new-identity alpha$/);
    const left = await readdir(world.at('out'), { recursive: true });
    for (const file of FILES.filter((file) => names.includes(file))) expect(left).toContain(file);
    expect((await build()).failed.map(({ name }) => name)).toEqual(['alpha']);

    const renewed = await build({ newIdentities: new Set(['alpha']) });
    expect([renewed.failed, renewed.made, renewed.reused]).toEqual([[], 1, 1]);
    expect((await build()).reused).toBe(2);
  });

  it('refuses its site if only the list has a record of it', async () => {
    world.write(inFolder('sites', ALPHA));
    await build();
    await mkdir(world.at('elsewhere'));
    await copyFile(world.at('out/sites.json'), world.at('elsewhere/sites.json'));
    const { failed } = await build({ out: 'elsewhere' });
    expect(failed.map(({ name }) => name)).toEqual(['alpha']);
  });

  it('is not replaced, even with --rotate', async () => {
    world.write(inFolder('sites', ALPHA));
    await build();
    await loseState();
    await rm(world.at('out', FILES[1] ?? ''));
    expect((await build({ rotate: true })).failed.map(({ name }) => name)).toEqual(['alpha']);
  });

  it('is reported by name on the command line, with the exit code of a site that was not built', async () => {
    world.write(inFolder('sites', ALPHA));
    await build();
    await loseState();
    await rm(world.at('out/alpha/auth/kubeconfig'));
    const args = ['config-iso', 'build', 'sites', '--out', 'out'];
    const { exitCode, stderr } = await world.run(...args);
    expect(exitCode).toBe(3);
    expect(stderr).toContain('alpha: the keys of alpha are lost: ');
    expect(stderr).toContain('--new-identity alpha');
    expect(stderr).not.toMatch(/PRIVATE|\$2a\$/);
    expect((await world.run(...args, '--new-identity', 'alpha')).exitCode).toBe(0);
  });
});
