import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import type { Digest } from '../../../src/base/digest.ts';
import { digestFile, hasFile } from '../../../src/base/disk/files.ts';
import { createLiveWorld, type LiveWorld } from '../../support/live-iso.ts';
import type { TestImage } from '../../support/images.ts';
import { buildLayeredImage } from '../../support/release.ts';
import { requireTool } from '../../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid'].map((tool) => requireTool(tool)).every(Boolean);

describe.skipIf(!hasTools)('a tag that moved since it was planned', () => {
  let world: LiveWorld;
  let [old, moved]: [string, string] = ['', ''];
  const at = (name: string): string => join(world.directory, name);
  const tool = (): string => `${world.registry.host}/team/tool:1`;

  beforeEach(async () => {
    await (world as LiveWorld | undefined)?.close();
    world = await createLiveWorld();
    const image = await buildLayeredImage([[['usr/bin/tool', 'old']]]);
    world.registry.add('team/tool', image, '1');
    old = digestOfTop(image);
    await world.writeConfig(`additionalImages: [{name: "${tool()}"}]`);
    const plan = await world.run('plan', '-o', 'json');
    expect(plan.exitCode, plan.stderr).toBe(0);
    expect(plan.stderr).not.toContain('moved');
    await writeFile(at('plan.json'), plan.stdout);
  });
  afterAll(() => world.close());

  async function move(): Promise<void> {
    const image = await buildLayeredImage([[['usr/bin/tool', 'moved']]]);
    world.registry.add('team/tool', image, '1');
    moved = digestOfTop(image);
  }

  it('is reported with both digests by the build, as a warning and as an event', async () => {
    await move();
    const args = ['build', '--output', 'x.iso', '--log-format', 'json'];
    const { exitCode, stderr } = await world.run(...args);
    expect(exitCode, stderr).toBe(0);
    const events = stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { readonly type: string; readonly message?: string });
    const warnings = events.flatMap(({ type, message }) => (type === 'warning' ? [message] : []));
    expect(warnings.filter((message) => message?.includes(' has moved '))).toEqual([
      `${tool()} has moved since the last plan or build: it was ${old} and is ${moved}`,
    ]);
    const again = await world.run('build', '--output', 'y.iso');
    expect(again.stderr).not.toContain('has moved');
  });

  it('keeps its planned image in a build of the saved plan', async () => {
    const plain = await world.run('build', '--output', 'x.iso');
    expect(plain.exitCode, plain.stderr).toBe(0);
    const first = await digestFile(at('x.iso'));
    await move();
    await rm(at('.sealift'), { recursive: true });
    const build = ['build', 'live-iso', '--output', 'y.iso', '--plan'];
    const { exitCode, stderr } = await world.run(...build, 'plan.json');
    expect(exitCode, stderr).toBe(0);
    expect(await digestFile(at('y.iso'))).toBe(first);
    expect(stderr).not.toContain('has moved'); // what the tag names now was not asked
    const report = await readFile(at('y.iso.report.json'), 'utf8');
    expect((JSON.parse(report) as { tags: Record<string, string> }).tags).toEqual({
      [tool()]: old,
    });
    // The report of a build says the same as its plan.
    await rm(at('y.iso'));
    const again = await world.run(...build, 'x.iso.report.json');
    expect(again.exitCode, again.stderr).toBe(0);
    expect(await digestFile(at('y.iso'))).toBe(first);
  });

  it('stops a build of the plan if the registry has lost its image', async () => {
    await move();
    world.registry.breakPath(`/v2/team/tool/manifests/${old}`, 404);
    const { exitCode, stderr } = await world.run(
      'build',
      '--output',
      'x.iso',
      '--plan',
      'plan.json',
    );
    expect(exitCode).toBe(4);
    expect(stderr).toContain(
      `${tool()} was ${old} when it was planned, and that digest no longer exists`,
    );
    expect(stderr).toContain('hint: restore the image in the registry, or plan again');
    expect(await hasFile(at('x.iso'))).toBe(false);
  });

  it('does not hide that the configuration has changed since', async () => {
    world.registry.add('team/other', await buildLayeredImage([[['usr/bin/other', 'x']]]), '1');
    await world.writeConfig(
      `additionalImages: [{name: "${tool()}"}, {name: "${world.registry.host}/team/other:1"}]`,
    );
    const build = ['build', '--output', 'x.iso', '--plan', 'plan.json'];
    const added = await world.run(...build);
    expect(added.exitCode).toBe(3);
    expect(added.stderr).toContain('the plan has no digest for');
    await world.writeConfig();
    const removed = await world.run(...build);
    expect(removed.exitCode).toBe(3);
    expect(removed.stderr).toContain('plan.differs');
    expect(await hasFile(at('x.iso'))).toBe(false);
  });

  it.each([
    ['missing', undefined, 'plan.unreadable'],
    ['empty', '', 'plan.malformed'],
    ['a plan of another product', '{"product":"installation-iso"}', 'plan.malformed'],
    ['without digests', '{"product":"live-iso","tags":{"a":"b"}}', 'plan.malformed'],
  ])('is not built if the file of the plan is %s', async (_what, text, code) => {
    if (text !== undefined) await writeFile(at('other.json'), text);
    const outcome = await world.run('build', '--output', 'x.iso', '--plan', 'other.json');
    expect(outcome.exitCode).toBe(3);
    expect(outcome.stderr).toContain(code);
  });
});

function digestOfTop({ manifests: [top] }: TestImage): Digest {
  if (top === undefined) throw new Error('an image has a manifest');
  return top.descriptor.digest;
}
