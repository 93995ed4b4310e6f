import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { digestFile, hasFile } from '../../src/base/disk/files.ts';
import { startSealift } from '../support/child.ts';
import {
  copyToFaultyRegistry,
  redirectWorld,
  type FaultyRegistry,
} from '../support/faulty-registry.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import type { LoggedRequest, Script } from '../support/scripted-registry.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid'].map((tool) => requireTool(tool)).every(Boolean);

describe.skipIf(!hasTools)('a build from a registry that misbehaves', () => {
  let world: LiveWorld;
  let registry: FaultyRegistry;
  let other: FaultyRegistry;
  let whole: string;
  let count = 0;
  const at = (name: string): string => join(world.directory, name);
  const nothing = (): undefined => undefined;

  beforeAll(async () => {
    world = await createLiveWorld();
    registry = await copyToFaultyRegistry(world);
    other = await copyToFaultyRegistry(world);
    await world.writeConfig('  registriesConf: registries.conf');
    await redirectWorld(world, [registry.host]);
    const { code, stderr, output } = await build();
    expect(code, stderr).toBe(0);
    whole = await digestFile(output);
  }, 60_000);
  afterAll(async () => {
    await registry.close();
    await other.close();
    await world.close();
  });
  beforeEach(async () => {
    registry.script(nothing);
    other.script(nothing);
    await redirectWorld(world, [registry.host]);
  });

  /** Each time with an empty work directory: nothing already exists. */
  async function build() {
    count += 1;
    const output = at(`${count}.iso`);
    const args = ['build', '--output', output, '--work-dir', at(`work-${count}`)];
    const ended = await startSealift(args, { cwd: world.directory }).ended;
    return { ...ended, output };
  }

  /** What goes wrong with the first, second, ... answer for the layer; later ones are right. */
  const spoil = (...scripts: readonly Script[]): void => {
    const before = registry.requestsOf(registry.layer.digest).length;
    registry.script(({ path }) => {
      if (!path.includes(registry.layer.digest)) return undefined;
      return scripts[registry.requestsOf(registry.layer.digest).length - before - 1];
    });
  };

  const wrong = (): Buffer => Buffer.alloc(registry.layer.size, 'x');

  it('refuses a blob with other bytes, names it, and keeps the rest', async () => {
    registry.script(({ path }) =>
      path.includes(registry.layer.digest) ? { body: wrong() } : undefined,
    );
    const { code, stderr, output } = await build();
    expect(code, stderr).toBe(5);
    expect(stderr).toContain(`expected: ${registry.layer.digest}`);
    expect(stderr).toMatch(/found: +sha256:[0-9a-f]{64}/);
    expect(stderr).toContain(`but ${registry.host} gave sha256:`);
    expect(await hasFile(output)).toBe(false);
    expect(await hasFile(`${output}.partial`)).toBe(true);
  });

  it.each<[string, readonly Script[]]>([
    ['cuts a blob off', [{ cutAfter: 40 }]],
    ['ignores the Range that continues a blob', [{ cutAfter: 40 }, { ignoreRange: true }]],
    ['asks for patience (429, Retry-After)', [{ status: 429, headers: { 'retry-after': '1' } }]],
    ['has a burst of failures', [{ status: 500 }, { status: 502 }, { status: 503 }]],
  ])('gives the same ISO if the registry %s', async (_what, scripts) => {
    const before = registry.requestsOf(registry.layer.digest).length;
    spoil(...scripts);
    const { code, stderr, output } = await build();
    expect(code, stderr).toBe(0);
    expect(await digestFile(output)).toBe(whole);
    const asked = registry.requestsOf(registry.layer.digest).slice(before);
    expect(asked).toHaveLength(scripts.some((s) => s.ignoreRange) ? 2 : scripts.length + 1);
    const continues = (scripts[0]?.cutAfter ?? 0) > 0;
    expect(asked[1]?.headers.range?.replace(/\d+$/, '')).toBe(continues ? 'bytes=40-' : undefined);
  });

  it('follows a redirect to another host without sending credentials there', async () => {
    await withCredentials('sesame', async () => {
      const accepts = demand('sesame');
      registry.script((request) => {
        const refusal = accepts(request);
        if (refusal || !request.path.includes('/blobs/')) return refusal;
        return { status: 307, headers: { location: `http://${other.host}${request.path}` } };
      });
      const before = other.requests.length;
      const { code, stderr, output } = await build();
      expect(code, stderr).toBe(0);
      expect(await digestFile(output)).toBe(whole);
      const there = other.requests.slice(before);
      expect(there.length).toBeGreaterThan(0);
      expect(there.filter(({ headers }) => headers.authorization !== undefined)).toEqual([]);
    });
  });

  it('uses the next source after a mirror with wrong bytes', async () => {
    registry.script(({ path }) =>
      path.includes(registry.layer.digest) ? { body: wrong() } : undefined,
    );
    await redirectWorld(world, [registry.host, other.host]);
    const before = other.requestsOf(registry.layer.digest).length;
    const { code, stderr, output } = await build();
    expect(code, stderr).toBe(0);
    expect(await digestFile(output)).toBe(whole);
    expect(other.requestsOf(registry.layer.digest).length).toBeGreaterThan(before);
  });

  it('names the credential that was refused, never its value', async () => {
    await withCredentials('guessed', async () => {
      registry.script(demand('sesame'));
      const { code, stderr, stdout } = await build();
      expect(code, stderr).toBe(4);
      expect(stderr).toContain(`pullSecret entry ${registry.host}`);
      expect(stderr + stdout).not.toContain('guessed');
      expect(stderr + stdout).not.toContain(encode('guessed'));
    });
  });

  const encode = (password: string): string => Buffer.from(`puller:${password}`).toString('base64');

  const demand =
    (password: string) =>
    ({ headers }: LoggedRequest): Script | undefined =>
      headers.authorization === `Basic ${encode(password)}`
        ? undefined
        : { status: 401, headers: { 'www-authenticate': 'Basic realm="test"' }, body: '{}' };

  async function withCredentials(password: string, work: () => Promise<void>): Promise<void> {
    const config = at('appliance-config.yaml');
    const text = await readFile(config, 'utf8');
    const auths = { auths: { [registry.host]: { auth: encode(password) } } };
    await mkdir(at('secrets'), { recursive: true });
    await writeFile(at('secrets/pull.json'), JSON.stringify(auths));
    await writeFile(config, text.replace(/^pullSecret:.*$/m, 'pullSecret: file:secrets/pull.json'));
    try {
      await work();
    } finally {
      await writeFile(config, text);
    }
  }
});
