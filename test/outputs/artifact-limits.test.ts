import { access, chmod, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import { registerPull } from '../../src/cli/medium/artifact.ts';
import { registerPush } from '../../src/cli/medium/artifact.ts';
import type { PushReport } from '../../src/outputs/artifact.ts';
import { freePort } from '../support/local-http.ts';
import { startNginx, type Nginx } from '../support/nginx.ts';
import { makeNightlyBase, noiseImage, writeNightly } from '../support/nightly-medium.ts';
import { startPlainRegistry, type PlainRegistry } from '../support/plain-registry.ts';
import { runCommand } from '../support/run-command.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['docker-registry', 'nginx', 'genisoimage'].map(requireTool).every(Boolean);

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const INDEX = 'application/vnd.oci.image.index.v1+json';

type Layer = { digest: string; size: number; annotations: Record<string, string> };
type Document = {
  artifactType?: string;
  layers: Layer[];
  annotations: Record<string, string>;
};

describe.skipIf(!hasTools)('a pushed artifact', () => {
  let home: string;
  let registry: PlainRegistry;
  let nginx: Nginx;
  let limited: string;
  let good: string;
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'sealift-oci-'));
    registry = await startPlainRegistry(join(home, 'store'));
    const port = await freePort();
    limited = `127.0.0.1:${port}`;
    const proxy = `proxy_pass http://${registry.host}; proxy_set_header Host $http_host;`;
    nginx = await startNginx(
      join(home, 'nginx'),
      port,
      `client_max_body_size 0; ${proxy} ` +
        `location ~ ^/v2/tiny/.*/manifests/ { client_max_body_size 1k; ${proxy} }` +
        `location ~ /manifests/ { client_max_body_size 5k; ${proxy} }`,
    );
    const basePath = await makeNightlyBase(home, 'base', 100_000);
    const layers = Array.from({ length: 40 }, (_, at) => `layer-${at}`);
    const image = noiseImage(layers, 70_000);
    const images = [{ name: 'everything', source: 'quay.io/a/b', image }];
    await writeNightly(join(home, 'iso'), { basePath, images });
    await push(registry.host, 'm/iso:good');
    good = await (await manifestOf('good')).text();
  }, 60_000);
  afterAll(async () => {
    await nginx.kill();
    await registry.close();
    await rm(home, { recursive: true });
  });

  const run = (...args: readonly string[]) =>
    runCommand(args[0] === 'push' ? registerPush : registerPull, args, { cwd: home });
  const push = async (host: string, name: string): Promise<PushReport> => {
    const { exitCode, stdout, stderr } = await run(
      'push',
      'iso',
      `oci://${host}/${name}`,
      '-o',
      'json',
    );
    expect([exitCode, stderr]).toEqual([0, expect.any(String)]);
    return JSON.parse(stdout) as PushReport;
  };
  const manifestOf = (name: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`http://${registry.host}/v2/m/iso/manifests/${name}`, {
      headers: { accept: `${MANIFEST}, ${INDEX}` },
      ...init,
    });
  const put = async (document: unknown, type = MANIFEST): Promise<void> => {
    const { status } = await manifestOf('bad', {
      method: 'PUT',
      headers: { 'content-type': type },
      body: JSON.stringify(document),
    });
    expect(status).toBe(201);
  };
  const refusalOf = async (tag = 'bad'): Promise<string> => {
    const { exitCode, stderr } = await run(
      ...[
        'pull',
        `oci://${registry.host}/m/iso:${tag}`,
        '--output',
        'bad.iso',
        '--retry-for',
        '1s',
      ],
    );
    expect(exitCode).toBeGreaterThan(0);
    await expect(access(join(home, 'bad.iso'))).rejects.toThrow('ENOENT');
    return `${exitCode} ${/\[([a-z.-]+)\]/.exec(stderr)?.[1] ?? stderr}`;
  };

  it.each<[string, string, (document: Document, layers: readonly Layer[]) => unknown]>([
    [
      'is an image',
      '5 artifact.not-ours',
      (it) => ({ ...it, artifactType: undefined, annotations: {} }),
    ],
    ['is of another type', '5 artifact.not-ours', (it) => ({ ...it, artifactType: 'text/plain' })],
    [
      'has no size',
      '5 artifact.malformed',
      (it) => ({ ...it, annotations: { ...it.annotations, 'dev.sealift.iso.size': '1e9' } }),
    ],
    [
      'is much longer than its layers',
      '5 artifact.malformed',
      (it) => ({
        ...it,
        annotations: { ...it.annotations, 'dev.sealift.iso.size': String(128 << 20) },
      }),
    ],
    [
      'is shorter than its layers',
      '5 artifact.malformed',
      (it) => ({ ...it, annotations: { ...it.annotations, 'dev.sealift.iso.size': '4096' } }),
    ],
    [
      'has two layers for one byte',
      '5 artifact.malformed',
      (it, [first, second, ...rest]) => ({
        ...it,
        layers: [first, { ...second, annotations: first?.annotations }, ...rest],
      }),
    ],
    [
      'has a layer without an offset',
      '5 artifact.malformed',
      (it, [first, ...rest]) => ({ ...it, layers: [{ ...first, annotations: {} }, ...rest] }),
    ],
    [
      'has a layer that is longer than it states',
      '5 blob.too-long',
      (it, layers) => ({ ...it, layers: layers.map((one) => ({ ...one, size: one.size - 1 })) }),
    ],
    [
      'lacks a layer, so that its bytes are zeros',
      '5 artifact.wrong-digest',
      (it, layers) => ({ ...it, layers: layers.slice(1) }),
    ],
    [
      'names another index than its ISO has',
      '5 artifact.wrong-digest',
      (it) => ({
        ...it,
        annotations: { ...it.annotations, 'dev.sealift.iso.index': digestOf('another') },
      }),
    ],
    [
      'does not make an ISO',
      '5 artifact.wrong-digest',
      (it, [first]) => ({
        ...it,
        layers: [{ ...first, annotations: { 'dev.sealift.iso.offset': '0' } }],
        annotations: { ...it.annotations, 'dev.sealift.iso.sha256': undefined },
      }),
    ],
  ])('is refused when it %s', async (_what, code, change) => {
    const document = JSON.parse(good) as Document;
    await put(change(document, document.layers));
    expect(await refusalOf()).toBe(code);
  });

  it('is refused when its index contains itself, or names no manifest of ours', async () => {
    const { annotations, artifactType } = JSON.parse(good) as Document;
    const index = (manifests: readonly unknown[]) => ({
      ...{ schemaVersion: 2, mediaType: INDEX, artifactType, annotations, manifests },
    });
    const inner = JSON.stringify(index([]));
    await put(JSON.parse(inner), INDEX);
    const entry = { mediaType: INDEX, digest: digestOf(inner), size: inner.length };
    await put(index([entry]), INDEX);
    expect(await refusalOf()).toBe('5 artifact.malformed');
    await put(index([{ ...entry, size: 2 ** 40 }]), INDEX);
    expect(await refusalOf()).toBe('5 artifact.malformed');
  });

  it('is private when only the group could read the ISO', async () => {
    await chmod(join(home, 'iso'), 0o640);
    await push(registry.host, 'm/iso:group');
    await chmod(join(home, 'iso'), 0o644);
    const { annotations } = (await (await manifestOf('group')).json()) as Document;
    expect(annotations['dev.sealift.iso.private']).toBe('true');
    expect((JSON.parse(good) as Document).annotations['dev.sealift.iso.private']).toBe(undefined);
  });

  it('is refused when the registry lost a layer or does not have the tag', async () => {
    expect(await refusalOf('absent')).toBe('4 registry.manifest-unknown');
    await push(registry.host, 'm/lost:good');
    const [lost = ''] = await readdir(
      join(home, 'store/store/docker/registry/v2/repositories/m/lost/_layers/sha256'),
    );
    await fetch(`http://${registry.host}/v2/m/lost/blobs/sha256:${lost}`);
    await rm(
      join(home, 'store/store/docker/registry/v2/repositories/m/lost/_layers/sha256', lost),
      {
        recursive: true,
      },
    );
    const { exitCode, stderr } = await run(
      ...['pull', `oci://${registry.host}/m/lost:good`, '--output', 'bad.iso', '--retry-for', '1s'],
    );
    expect([exitCode, stderr]).toEqual([4, expect.stringContaining('[blob.unknown]')]);
  });

  it('gets smaller manifests when a registry refuses large ones, and is refused by a registry that refuses all of them', async () => {
    expect(good.length).toBeGreaterThan(5 * 1024);
    const { manifests } = await push(limited, 'm/small:tag');
    expect(manifests).toBeGreaterThan(1);
    const pulled = await run('pull', `oci://${limited}/m/small:tag`, '--output', 'small.iso');
    expect([pulled.exitCode, pulled.stderr]).toEqual([0, expect.any(String)]);
    const { exitCode, stderr } = await run('push', 'iso', `oci://${limited}/tiny/iso:tag`);
    expect([exitCode, stderr]).toEqual([4, expect.stringContaining('[artifact.manifest-limit]')]);
  });

  it('is not made of an ISO that is damaged or has no index', async () => {
    const { exitCode, stderr } = await run('push', 'base-base.iso', `oci://${registry.host}/m/x:y`);
    expect([exitCode, stderr]).toEqual([5, expect.stringContaining('[artifact.no-index]')]);
  });
});
