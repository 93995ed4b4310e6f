import { constants, copyFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readIndex, type IndexExtent } from '../src/media/media-index.ts';
import { useMedium } from '../src/media/open.ts';
import { prepare, type Site } from './build.ts';
import { addFigures, type Figures } from './figures.ts';
import { startDockerRegistry } from './reference.ts';
import { measurePeers } from './reuse-peers.ts';
import { runSealift, shell, startSource } from './run.ts';
import type { SourceShape } from './source-shape.ts';

/**
 * Two nights in which 5 % of the images are others, each built in the place of the earlier ISO with no blob in the
 * cache: one where every byte of that is hashed, one by the record of the build before. Then it is built once more, and
 * the delta of the second night is made and applied, beside those of other tools, and pushed.
 */
export async function benchReuse(shape: SourceShape, site: Site, figures: Figures): Promise<void> {
  const work = await buildFirst(shape, site);
  const at = (name: string): string => join(work.path, name);
  const first = await benchNight({ ...shape, night: 1 }, work.path, { site, args: ['--rehash'] });
  copyFileSync(at('out.iso'), at('old.iso'), constants.COPYFILE_FICLONE);
  const recorded = await benchNight({ ...shape, night: 2 }, work.path, { site });
  const places = await comparePlaces(at('old.iso'), at('out.iso'));
  console.log(
    `  reuse: first ${work.seconds.toFixed(1)} s, 5 % changed ${first.seconds.toFixed(1)} s, ` +
      `by record ${recorded.seconds.toFixed(1)} s, unchanged ${recorded.unchanged.toFixed(2)} s`,
  );
  addFigures(figures, {
    nightFetched: { value: first.fetched, atMost: 0.055 },
    nightWall: { value: first.seconds / work.seconds, atMost: 0.5 },
    nightCpu: { value: first.cpu / work.cpu, atMost: 0.5 },
    recordedWall: { value: recorded.seconds / work.seconds, atMost: 0.5 },
    recordedCpu: { value: recorded.cpu / work.cpu, atMost: 0.5 },
    nightInPlace: { value: places.inPlace, atLeast: 0.94 },
    unchangedSeconds: { value: recorded.unchanged, atMost: 1 },
  });
  await benchDelta(work.path, places.changed, figures);
  await benchPush(work.path, figures);
}
type Night = {
  readonly seconds: number;
  /** Seconds of processor time. */
  readonly cpu: number;
  /** Of the payload. */
  readonly fetched: number;
  /** Seconds of a build that finds nothing changed. */
  readonly unchanged: number;
};

async function benchNight(
  shape: SourceShape,
  work: string,
  { site, args = [] }: { readonly site: Site; readonly args?: readonly string[] },
): Promise<Night> {
  const source = await startSource(shape);
  try {
    const config = join(prepare('reuse-night', source, site), 'appliance-config.yaml');
    copyFileSync(config, join(work, 'appliance-config.yaml'));
    rmSync(join(work, '.sealift/cache/blobs'), { recursive: true });
    const { served: before } = await source.bytesServed();
    const build = ['build', '--output', 'out.iso', '-o', 'json'];
    const { seconds, measures } = await runSealift([...build, ...args], work);
    const { served } = await source.bytesServed();
    const again = await runSealift(build, work);
    const { isUpToDate } = JSON.parse(again.stdout) as { isUpToDate: boolean };
    if (!isUpToDate) throw new Error('the ISO was built again without a change');
    return {
      seconds,
      cpu: measures.userSeconds + measures.systemSeconds,
      fetched: (served - before) / source.payloadSize,
      unchanged: again.seconds,
    };
  } finally {
    await source.stop();
  }
}

async function buildFirst(
  shape: SourceShape,
  site: Site,
): Promise<{ path: string; seconds: number; cpu: number }> {
  const source = await startSource(shape);
  try {
    const path = prepare('reuse', source, site);
    const { seconds, measures } = await runSealift(['build', '--output', 'out.iso'], path);
    return { path, seconds, cpu: measures.userSeconds + measures.systemSeconds };
  } finally {
    await source.stop();
  }
}

async function benchDelta(work: string, changed: number, figures: Figures): Promise<void> {
  const sizeOf = (name: string): number => statSync(join(work, name)).size;
  const made = await runSealift(['delta', 'old.iso', 'out.iso', '--output', 'night.delta'], work);
  const applied = await runSealift(
    ['apply', 'old.iso', 'night.delta', '--output', 'new.iso'],
    work,
  );
  await shell('cmp out.iso new.iso', work);
  const peers = await measurePeers(work);
  console.log(
    `  delta: ${sizeOf('night.delta')} bytes in ${made.seconds.toFixed(1)} s, applied in ${applied.seconds.toFixed(1)} s`,
  );
  for (const { peer, bytes, seconds } of peers) {
    console.log(`  ${peer}: ${bytes} bytes in ${seconds.toFixed(1)} s`);
  }
  figures.values['deltaPeers'] = peers;
  const least = Math.min(...peers.map(({ bytes }) => bytes));
  const xdelta = peers.find(({ peer }) => peer === 'xdelta3');
  addFigures(figures, {
    deltaRatio: { value: sizeOf('night.delta') / changed, atMost: 1.01 },
    deltaOverLeastPeer: { value: sizeOf('night.delta') / least, atMost: 1.02 },
    deltaTimeOverXdelta3: { value: made.seconds / (xdelta?.seconds ?? NaN), atMost: 0.1 },
  });
}

/** The ISOs of two nights, pushed one after the other to a registry that has nothing. */
async function benchPush(work: string, figures: Figures): Promise<void> {
  const registry = await startDockerRegistry(join(work, 'pushed'));
  try {
    const push = async (name: string): Promise<number> => {
      const address = `oci://127.0.0.1:${registry.port}/nightly/ove:${name}`;
      const { stdout } = await runSealift(['push', `${name}.iso`, address, '-o', 'json'], work);
      return (JSON.parse(stdout) as { sent: number }).sent;
    };
    await push('old');
    const sent = await push('out');
    const value = sent / statSync(join(work, 'out.iso')).size;
    addFigures(figures, { pushedNight: { value, atMost: 0.06 } });
  } finally {
    await registry.stop();
  }
}

/** The part of the new ISO's bytes that are where the old one has them, and the bytes that it has not at all. */
async function comparePlaces(
  old: string,
  now: string,
): Promise<{ inPlace: number; changed: number }> {
  const before = await readExtents(old);
  const known = new Set(before.map(({ digest }) => digest));
  const places = new Map(before.map(({ digest, offset }) => [digest, offset]));
  const after = await readExtents(now);
  const sum = (extents: readonly IndexExtent[]): number =>
    extents.reduce((bytes, { size }) => bytes + size, 0);
  return {
    inPlace: sum(after.filter(({ digest, offset }) => places.get(digest) === offset)) / sum(after),
    changed: sum(after.filter(({ digest }) => digest === undefined || !known.has(digest))),
  };
}

const readExtents = (path: string): Promise<readonly IndexExtent[]> =>
  useMedium(path, async (iso) => (await readIndex(iso))?.extents ?? []);
