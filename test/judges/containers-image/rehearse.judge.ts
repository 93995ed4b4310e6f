import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Rehearsal } from '../../../src/media/rehearse/rehearse.ts';
import type { RehearsedStep } from '../../../src/media/rehearse/step.ts';
import { requireTool } from '../../support/tools.ts';
import { alterMedium, readFromMedium } from './alter.ts';
import { BROKEN, type Broken } from './broken.ts';
import { createMediaWorld, GOOD_MEDIA, type GoodMedium, type MediaWorld } from './media.ts';
import { judge, pullAll, type Refusals } from './node.ts';

const TOOLS = [
  'systemd-analyze',
  'xorriso',
  'cpio',
  'bsdtar',
  'docker-registry',
  'skopeo',
  'isohybrid',
  'mformat',
];
const hasAll = TOOLS.map((tool) => requireTool(tool)).every(Boolean) && judge !== undefined;

const GRUB = '/EFI/redhat/grub.cfg';
const LABEL = 'rhcos-9.6.20260101-0';

type Row = {
  readonly medium: string;
  readonly part: string;
  readonly rehearsal: string;
  readonly pulls: string;
};

/** Rehearsals of good media, and of media broken by the table in `broken.ts`; the judge pulls what they speak of. */
describe.skipIf(!hasAll)('a rehearsal', () => {
  let world: MediaWorld;
  const table: Row[] = [];
  beforeAll(async () => {
    world = await createMediaWorld(GOOD_MEDIA);
  });
  afterAll(async () => {
    console.table(table);
    await world.close();
  });

  const find = (name: string): GoodMedium => {
    const medium = world.media.find((one) => one.name === name);
    if (medium) return medium;
    throw new Error(`no medium ${name}`);
  };

  async function rehearse(path: string): Promise<readonly RehearsedStep[]> {
    const { exitCode, stdout, stderr } = await world.run('rehearse', path, '-o', 'json');
    if (stdout === '') throw new Error(stderr);
    const { steps } = JSON.parse(stdout) as Rehearsal;
    const failing = steps.filter(({ outcome }) => outcome === 'will-not');
    expect([exitCode, failing]).toEqual([failing.length === 0 ? 0 : 8, failing]);
    return failing;
  }

  const note = (medium: string, failing: readonly RehearsedStep[], refusals?: Refusals): void => {
    table.push({
      medium,
      part: [...new Set(failing.map(({ part }) => part))].join(', '),
      rehearsal: (failing[0]?.reason ?? failing[0]?.name ?? 'nothing fails').slice(0, 100),
      pulls: refusals ? `${refusals.size} refused` : '',
    });
  };

  it.each(GOOD_MEDIA)(
    'of the good medium %s says that nothing fails, and nothing does',
    async (name) => {
      const medium = find(name);
      const [failing, refusals] = [await rehearse(medium.path), await pullAll(medium)];
      note(name, failing, refusals);
      expect([failing, refusals]).toEqual([[], new Map()]);
    },
  );

  it('of a medium that xorriso wrote again with another menu says that nothing fails', async () => {
    const { path } = find('4.21');
    const nothing = (): void => undefined;
    const menu = readFromMedium(path, GRUB).toString('latin1');
    const files = { [GRUB]: `search --no-floppy --set=root -l '${LABEL}'\n${menu}` };
    alterMedium(path, `${path}.again`, { bootstrap: nothing, embedded: nothing, files });
    expect(await rehearse(`${path}.again`)).toEqual([]);
    await rm(`${path}.again`);
  });

  it.each(BROKEN.map((row) => [row.name, row] as const))(
    'says what fails if %s',
    async (name, row: Broken) => {
      const medium = find(row.base);
      const path = `${medium.path}.broken`;
      alterMedium(medium.path, path, row.change(medium, world));
      try {
        const failing = await rehearse(path);
        const expected = row.refused?.(medium).toSorted();
        const refusals = expected && (await pullAll(medium, path));
        note(name, failing, refusals);
        expect(failing.map(({ part }) => part)).toContain(row.part);
        if (!refusals) return;
        const refused = [...refusals.keys()].toSorted();
        expect(refused).toEqual(expected);
        expect(predict(failing, refused)).toEqual(refused);
      } finally {
        await rm(path);
      }
    },
  );
});

/** The images of which a rehearsal says that hosts do not get them. */
function predict(failing: readonly RehearsedStep[], refused: readonly string[]): readonly string[] {
  // Without the registry, nothing is pulled.
  if (failing.some(({ part }) => part === 'registry')) return refused;
  const reasons = failing.flatMap(({ part, reason = '' }) => (part === 'pulls' ? [reason] : []));
  const images = reasons.flatMap((reason) => /^(\S+\/\S+) \(/.exec(reason)?.[1] ?? []);
  // A reason that names no image is why they all fail, or is about contents.
  return images.length === 0 && reasons.length > 0 ? refused : [...new Set(images)].toSorted();
}
