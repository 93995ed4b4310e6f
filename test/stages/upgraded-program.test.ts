import { appendFile, cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf, type Digest } from '../../src/base/digest.ts';
import { readLiveIsoRequest } from '../../src/cli/ask-appliance.ts';
import type { BuildEvent } from '../../src/engine/engine.ts';
import { openBuildTools } from '../../src/stages/tools.ts';
import { buildIso } from '../../src/stages/build.ts';
import { LIVE_ISO } from '../../src/stages/live-iso.ts';
import type { LiveIsoReport } from '../../src/stages/report/live-iso.ts';
import { digestProgram, digestSources, readProgramDigest } from '../../src/base/program.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid'].map((tool) => requireTool(tool)).every(Boolean);

describe.skipIf(!hasTools)('another version of the program', () => {
  let world: LiveWorld;
  beforeAll(async () => {
    world = await createLiveWorld();
    const id = '"source":"data:,\'"$(cat /proc/sys/kernel/random/uuid)"\'"';
    const script = [
      '#!/bin/sh',
      'while [ $# -gt 0 ]; do [ "$1" = --dir ] && dir=$2; shift; done',
      `echo '{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/id","contents":{${id}}}]}}' > "$dir/unconfigured-agent.ign"`,
    ];
    await writeFile(join(world.directory, 'installer'), script.join('\n'), { mode: 0o755 });
    await world.writeConfig('  installer: installer', 'userCorePass: hunter2');
  });
  afterAll(() => world.close());

  async function build(program: Digest): Promise<{ report: LiveIsoReport; events: BuildEvent[] }> {
    const host = world.host();
    const events: BuildEvent[] = [];
    const options = { output: 'x.iso', ignition: 'installer' as const };
    const request = await readLiveIsoRequest(['appliance-config.yaml'], options, host);
    const tools = await openBuildTools({
      config: request.config,
      request,
      workDir: request.workDir,
      env: host.env,
      redaction: host.redaction,
      cwd: host.cwd,
      signal: host.signal,
      emit: (event) => void events.push(event),
      program,
    });
    try {
      return { report: await buildIso(LIVE_ISO, request, tools), events };
    } finally {
      await tools.close();
    }
  }
  const reusedOf = ({ stages }: LiveIsoReport): readonly string[] =>
    stages.filter(({ reused }) => reused).map(({ stage }) => stage);

  it('runs all stages again except those that drew random values, and continues the partial output', async () => {
    const layer = await findLayer(world);
    world.registry.breakPath(layer, 404);
    await expect(build(digestOf('old'))).rejects.toMatchObject({ exitCode: 4 });
    world.registry.breakPath(layer);
    const { report, events } = await build(digestOf('new'));
    expect(reusedOf(report)).toEqual(['draw password salt', 'run installer']);
    expect(report.bytes.reused).toBeGreaterThan(1_000_000);
    const warnings = events.flatMap((event) => (event.type === 'warning' ? [event.message] : []));
    expect(warnings).toEqual([expect.stringContaining('InternalReleaseImage')]);
    await rm(join(world.directory, 'x.iso'));
    const again = await build(digestOf('new'));
    expect([...reusedOf(again.report)].sort()).toEqual(
      ['draw password salt', 'run installer', 'fetch base ISO', 'scan base ISO'].sort(),
    );
    expect(again.report.digest).toBe(report.digest);
  });
});

/** The path of a layer that is not needed before the pour. */
async function findLayer({ registry, release }: LiveWorld): Promise<string> {
  const path = `/v2/ocp/art-dev/manifests/${release.components['etcd'] ?? ''}`;
  const response = await fetch(`http://${registry.host}${path}`);
  const { layers } = (await response.json()) as { readonly layers: { readonly digest: string }[] };
  return `/v2/ocp/art-dev/blobs/${layers.at(-1)?.digest ?? ''}`;
}

describe('the digest of the program', () => {
  const root = resolve('.');

  it('is the digest of the sources if the program runs from them', async () => {
    expect(await readProgramDigest()).toBe(await digestSources(root));
  });

  it('changes with the bundled code, a template and a schema, and with nothing else', async () => {
    const copy = await copyOf('templates', 'schema', 'package-lock.json');
    try {
      await mkdir(join(copy, 'dist'));
      await writeFile(join(copy, 'dist/main.cjs'), 'run();\n');
      const take = (): Promise<Digest> => digestProgram(copy, join(copy, 'dist'));
      const seen = [await take()];
      const [template = ''] = (await readdir(join(copy, 'templates'), { recursive: true })).filter(
        (name) => name.endsWith('.service'),
      );
      for (const name of [
        ...['dist/main.cjs', join('templates', template), 'schema/appliance-config.schema.json'],
      ]) {
        await appendFile(join(copy, name), '\n');
        seen.push(await take());
      }
      expect(new Set(seen).size).toBe(4);
      await appendFile(join(copy, 'package-lock.json'), '\n');
      await writeFile(join(copy, 'dist/program-digest.json'), '{}');
      await mkdir(join(copy, 'dist/compiled'));
      await writeFile(join(copy, 'dist/compiled/code'), 'V8');
      expect(await take()).toBe(seen.at(-1));
    } finally {
      await rm(copy, { recursive: true });
    }
  });

  it('changes with a dependency if the program runs from its sources', async () => {
    const copy = await copyOf('src', 'templates', 'schema', 'package-lock.json');
    try {
      const before = await digestSources(copy);
      await appendFile(join(copy, 'package-lock.json'), '\n');
      expect(await digestSources(copy)).not.toBe(before);
    } finally {
      await rm(copy, { recursive: true });
    }
  });

  async function copyOf(...names: readonly string[]): Promise<string> {
    const copy = await mkdtemp(join(tmpdir(), 'sealift-program-'));
    for (const name of names) await cp(join(root, name), join(copy, name), { recursive: true });
    return copy;
  }
});
