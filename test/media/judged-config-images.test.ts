import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeCpio, type CpioMember } from '../../src/ignition/cpio.ts';
import { checkConfigImage } from '../../src/media/config-image.ts';
import {
  IMAGE_SET_PATH,
  makeConfigImage,
  makeLiveMedium,
  unconfiguredIgnition,
} from '../support/config-image.ts';
import { requireTool } from '../support/tools.ts';
import { textFile, type IgnitionConfig } from '../../src/ignition/index.ts';

const RECORDED = '../shared/data/judged/installer';
const hasTools = ['genisoimage', 'isohybrid', 'xorriso'].map((tool) => requireTool(tool));

type Case = {
  readonly case: string;
  /** Absent if the installer made no image. */
  readonly loader?: 'TAKEN' | 'REFUSED';
  readonly members?: readonly (readonly [string, string, number, string])[];
};

/** Refused here, although the loader takes them: neither comes from an installer. */
const STRICTER: Readonly<Record<string, string>> = {
  garbage: 'bytes after the gzip stream',
  symlink: 'a link among the members, which would reach outside',
};

const read = (name: string): unknown =>
  JSON.parse(readFileSync(`${RECORDED}/${name}.json`, 'utf8'));

type Pristine = {
  readonly files: readonly {
    readonly path: string;
    readonly sha256: string;
    readonly text?: string;
  }[];
};

/** An image in the making. */
type Draft = {
  readonly members: readonly CpioMember[];
  readonly label?: string;
  readonly file?: string;
  readonly pack?: (members: readonly CpioMember[]) => Buffer;
};

type Change = (members: readonly CpioMember[]) => Omit<Draft, 'members'> & Partial<Draft>;

const pack = (members: readonly CpioMember[]): Buffer => gzipSync(encodeCpio(members));
const half = (bytes: Buffer): Buffer => bytes.subarray(0, bytes.length / 2);

const rename =
  (change: (name: string) => string): Change =>
  (members) => ({ members: members.map((each) => ({ ...each, name: change(each.name) })) });

/** Changes the file that names the release. */
const editImageSet =
  (change: (text: string) => string): Change =>
  (members) => ({
    members: members.map((each) =>
      each.name === IMAGE_SET_PATH
        ? { ...each, data: Buffer.from(change(Buffer.from(each.data).toString('utf8'))) }
        : each,
    ),
  });

const add =
  (name: string, mode: number, data = ''): Change =>
  (members) => ({ members: [...members, { name, mode, data: Buffer.from(data) }] });

const CHANGES: Readonly<Record<string, Change>> = {
  relative: rename((name) => name.slice(1)),
  label: () => ({ label: 'AGENT_CONFIGIMAGE' }),
  noarchive: () => ({ file: 'other.gz' }),
  trunc: () => ({ pack: (members) => half(pack(members)) }),
  truncend: () => ({ pack: (members) => pack(members).subarray(0, -4) }),
  garbage: () => ({ pack: (members) => Buffer.concat([pack(members), Buffer.from('garbage')]) }),
  multi: () => ({
    pack(members) {
      const bytes = encodeCpio(members);
      return Buffer.concat([gzipSync(bytes.subarray(0, 999)), gzipSync(bytes.subarray(999))]);
    },
  }),
  crc: () => ({
    pack(members) {
      const text = Buffer.from(encodeCpio(members)).toString('latin1');
      return gzipSync(Buffer.from(text.replaceAll('070701', '070702'), 'latin1'));
    },
  }),
  notgz: () => ({ pack: (members) => Buffer.from(encodeCpio(members)) }),
  symlink: add('/etc/assisted/manifests/link', 0o120777, '/etc/passwd'),
  dupcis: add(IMAGE_SET_PATH, 0o100600, 'kind: ClusterImageSet\n'),
  crlfcis: editImageSet((text) => text.replaceAll('\n', '\r\n')),
  nonlcis: editImageSet((text) => text.trimEnd()),
  dirmember: add('/etc/assisted/manifests', 0o040755),
  evil: add('/etc/cron.d/evil', 0o100644, '* * * * * root true\n'),
  manifestsdot: rename((name) => name.replace('/manifests/', '/./manifests/')),
};

/** `drop_root_.docker_config.json` */
function dropOf(name: string): Change | undefined {
  if (!name.startsWith('drop_')) return undefined;
  const flat = name.slice('drop'.length);
  return (members) => ({
    members: members.filter((each) => each.name.replaceAll('/', '_') !== flat),
  });
}

describe.skipIf(!existsSync(RECORDED) || !hasTools.every(Boolean))(
  'the recorded verdicts of the loader of 4.22 on configuration images',
  () => {
    let directory: string;
    let medium: string;
    const pristine = existsSync(RECORDED) ? (read('pristine') as Pristine) : { files: [] };
    const imageSet = pristine.files.find(({ path }) => path === IMAGE_SET_PATH);
    beforeAll(async () => {
      directory = await mkdtemp(join(tmpdir(), 'sealift-judged-'));
      const loader = unconfiguredIgnition();
      const config: IgnitionConfig = {
        ...loader,
        storage: {
          files: pristine.files.map(({ path, text = '' }) => textFile(path, text, 0o600)),
        },
      };
      medium = await makeLiveMedium(directory, config);
    });
    afterAll(() => rm(directory, { recursive: true, force: true }));

    /** Contents are made up but for the file that the loader compares. */
    const draw = (members: NonNullable<Case['members']>): readonly CpioMember[] =>
      members.map(([name, mode, size, sha256]) => ({
        name,
        mode: Number(mode),
        data: Buffer.from(sha256 === imageSet?.sha256 ? (imageSet.text ?? '') : 'x'.repeat(size)),
      }));

    async function isTaken(name: string, { members, ...draft }: Draft): Promise<boolean> {
      const { pack: packed = pack, ...options } = draft;
      const path = await makeConfigImage(directory, packed(members), {
        ...options,
        name: `${name}.iso`,
      });
      const { fits } = await checkConfigImage(
        { path, shownAs: 'image' },
        { path: medium, shownAs: 'medium' },
      );
      return fits;
    }

    it('are ours on 35 images, but for two', async () => {
      const { cases } = read('agent-config-images') as { readonly cases: readonly Case[] };
      const judged = cases.filter(({ loader }) => loader !== undefined);
      const good = draw(
        cases.find(({ members, ...each }) => each.case === 'good' && members)?.members ?? [],
      );
      expect(judged).toHaveLength(35);
      const different: string[] = [];
      for (const { case: name, loader, members } of judged) {
        const change = members === undefined ? (CHANGES[name] ?? dropOf(name)) : undefined;
        const draft = members ? { members: draw(members) } : { members: good, ...change?.(good) };
        expect(members ?? change, name).toBeDefined();
        if ((await isTaken(name, draft)) !== (loader === 'TAKEN')) different.push(name);
      }
      expect(different.sort()).toEqual(Object.keys(STRICTER));
    });
  },
);
