import { execFileSync } from 'node:child_process';
import { mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { API, PULL_SECRET, startService, type TestService } from '../support/service.ts';
import { requireTool } from '../support/tools.ts';

const VERSION = '4.21.3';
const VERSIONS = `${API}/v2/openshift-versions`;
const name = (url: string) => ({ openshift_version: VERSION, cpu_architecture: 'x86_64', url });

describe.skipIf(!requireTool('genisoimage'))('a folder of the store', () => {
  let store: string;
  let service: TestService;
  const writeIso = (file: string, content: string): void => {
    const source = join(store, 'content');
    execFileSync('sh', ['-c', 'echo "$1" > "$0"', source, content]);
    execFileSync('genisoimage', ['-quiet', '-o', join(store, file), source]);
  };
  const writeList = (...urls: string[]): Promise<void> =>
    writeFile(join(store, 'os-images.json'), JSON.stringify(urls.map(name)));
  beforeEach(async () => {
    store = await mkdtemp(join(tmpdir(), 'sealift-store-'));
    writeIso('b.iso', 'b');
    await writeList('b.iso');
    service = await startService({ stores: [store] });
  });
  afterEach(async () => {
    await service.close();
    await rm(store, { recursive: true });
  });
  const listArchitectures = async (): Promise<unknown> => {
    const { body } = await service.call('GET', VERSIONS);
    return (body[VERSION] as { cpu_architectures: unknown } | undefined)?.cpu_architectures;
  };

  it('serves the other ISOs if a name is a loop of links, a pipe or not an ISO, and reports name and reason', async () => {
    await symlink('a.iso', join(store, 'a.iso'));
    execFileSync('mkfifo', [join(store, 'c.iso')]);
    await writeFile(join(store, 'd.iso'), 'text');
    expect(await listArchitectures()).toEqual(['x86_64']);
    expect(await listArchitectures()).toEqual(['x86_64']);
    const warnings = service.warnings.toSorted();
    expect(warnings).toHaveLength(3);
    expect(warnings[0]).toMatch(/a\.iso is not served: .*too many symbolic links/);
    expect(warnings[1]).toMatch(
      /c\.iso is not served: .*neither a regular file nor a block device/,
    );
    expect(warnings[2]).toMatch(/\/d\.iso is not (?:served: .|an ISO of sealift)/);
    expect(warnings.join('\n')).not.toMatch(/\.iso \d/);
  });

  it('recovers after its list of OS images was a pipe', async () => {
    const list = join(store, 'os-images.json');
    await rm(list);
    execFileSync('mkfifo', [list]);
    expect(await listArchitectures()).toBeUndefined();
    expect(service.warnings[0]).toContain('os-images.json is not served: ');
    await rm(list);
    await writeList('b.iso');
    expect(await listArchitectures()).toEqual(['x86_64']);
  });

  it('warns once about two ISOs of the same release, and lists the release once', async () => {
    writeIso('c.iso', 'c');
    await writeList('b.iso', 'c.iso');
    expect(await listArchitectures()).toEqual(['x86_64']);
    expect(await listArchitectures()).toEqual(['x86_64']);
    expect(service.warnings).toEqual([
      `${join(store, 'b.iso')} and ${join(store, 'c.iso')} are both ${VERSION} for x86_64: the first is served`,
    ]);
  });

  it('warns if it does not exist', async () => {
    const absent = join(store, 'absent');
    const other = await startService({ stores: [absent] });
    expect((await other.call('GET', '/ready')).status).toBe(503);
    expect(other.warnings).toEqual([expect.stringMatching(/absent is not served: ENOENT/)]);
    await other.close();
  });

  it('answers 410 if the InfraEnv or the ISO has changed, and names which', async () => {
    const cluster = await service.call('POST', `${API}/v2/clusters/disconnected`, {
      body: { name: 'edge', openshift_version: VERSION },
    });
    const { body } = await service.call('POST', `${API}/v2/infra-envs`, {
      body: { name: 'edge', pull_secret: PULL_SECRET, cluster_id: cluster.body['id'] },
    });
    const ask = async (url: unknown): Promise<unknown[]> => {
      const { pathname, search } = new URL(String(url));
      const answer = await service.call('GET', pathname + search);
      return [answer.status, answer.body['reason']];
    };
    const path = `${API}/v2/infra-envs/${String(body['id'])}`;
    const changed = await service.call('PATCH', path, { body: { rendezvous_ip: '192.0.2.1' } });
    expect(await ask(body['download_url'])).toEqual([
      410,
      `infra env ${String(body['id'])} has changed: request the URL of its image again`,
    ]);
    writeIso('new', 'another one');
    await rename(join(store, 'new'), join(store, 'b.iso'));
    expect(await ask(changed.body['download_url'])).toEqual([
      410,
      `the ISO of ${VERSION} for x86_64 was replaced: request the URL of its image again`,
    ]);
  });
});
