import { linkSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../test/support/local-http.ts';
import { startNginx } from '../test/support/nginx.ts';
import { shell, type Timed } from './run.ts';

/** What somebody who has the old ISO must be brought to make the new one of it. */
export type PeerDelta = {
  readonly peer: string;
  readonly bytes: number;
  /** Until it can be sent; for zsync, which has no such file, until the client has the new ISO. */
  readonly seconds: number;
};

/** `old.iso` and `out.iso` of a folder by the tools of the field, as Debian has them, each by its defaults. */
export async function measurePeers(work: string): Promise<readonly PeerDelta[]> {
  const sizeOf = (name: string): number => statSync(join(work, name)).size;
  const xdelta = await shell('xdelta3 -e -f -S none -s old.iso out.iso night.xdelta', work);
  return [
    { peer: 'xdelta3', bytes: sizeOf('night.xdelta'), seconds: xdelta.seconds },
    await measureCasync(work),
    await measureZchunk(work),
    await measureZsync(work),
  ];
}

/** The chunks that the second ISO adds to a store, and its list of chunks. */
async function measureCasync(work: string): Promise<PeerDelta> {
  const store = 'du -sb --apparent-size chunks | cut -f1';
  await shell('casync make --store=chunks old.caibx old.iso', work);
  const before = Number((await shell(store, work)).stdout);
  const { seconds } = await shell('casync make --store=chunks out.caibx out.iso', work);
  const after = Number((await shell(store, work)).stdout);
  rmSync(join(work, 'chunks'), { recursive: true });
  return {
    peer: 'casync',
    bytes: after - before + statSync(join(work, 'out.caibx')).size,
    seconds,
  };
}

async function measureZchunk(work: string): Promise<PeerDelta> {
  await shell('zck -o old.zck old.iso', work);
  const { seconds } = await shell('zck -o out.zck out.iso', work);
  const told = await shell('zck_delta_size old.zck out.zck', work);
  return { peer: 'zchunk', bytes: findNumber(told, /Would download (\d+)/), seconds };
}

async function measureZsync(work: string): Promise<PeerDelta> {
  const folder = join(work, 'zsync');
  mkdirSync(join(folder, 'files'), { recursive: true });
  linkSync(join(work, 'out.iso'), join(folder, 'files/out.iso'));
  await shell('zsyncmake -u out.iso -o files/out.iso.zsync files/out.iso', folder);
  const port = await freePort();
  const nginx = await startNginx(folder, port);
  try {
    const url = `http://127.0.0.1:${port}/out.iso.zsync`;
    const told = await shell(`zsync -i ../old.iso -o new.iso ${url}`, folder);
    await shell('cmp new.iso ../out.iso', folder);
    const list = statSync(join(folder, 'files/out.iso.zsync')).size;
    const bytes = list + findNumber(told, /fetched (\d+)/);
    return { peer: 'zsync', bytes, seconds: told.seconds };
  } finally {
    await nginx.kill();
    rmSync(folder, { recursive: true });
  }
}

function findNumber({ stdout }: Timed, pattern: RegExp): number {
  const found = pattern.exec(stdout)?.[1];
  if (found === undefined) throw new Error(`no ${pattern.source} in:\n${stdout.slice(-500)}`);
  return Number(found);
}
