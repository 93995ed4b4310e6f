import { chmodSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runProcess } from '../../../src/base/process.ts';
import type { SiteList } from '../../../src/sites/sources/list.ts';
import { listSites } from '../../../src/sites/sources/sites.ts';
import { runs } from '../../support/properties.ts';
import {
  membersOf,
  packTar,
  packTarGz,
  packZip,
  siteFiles,
  writeTree,
  type TarMember,
  type ZipMember,
} from '../../support/site-archives.ts';
import { asUser } from '../../support/as-user.ts';
import { readAllSites, showProblems } from '../../support/site-lists.ts';

let root = '';
const opened: SiteList[] = [];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sites-'));
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((sites) => sites.close()));
  rmSync(root, { recursive: true });
});

const { signal } = new AbortController();

async function open(name: string): Promise<SiteList> {
  const sites = await listSites(join(root, name), { signal });
  opened.push(sites);
  return sites;
}

const GOOD = membersOf(siteFiles('good'));

async function openZip(members: readonly ZipMember[]): Promise<SiteList> {
  writeFileSync(join(root, 's.zip'), packZip([...GOOD, ...members]));
  return open('s.zip');
}
async function openTar(members: readonly TarMember[]): Promise<SiteList> {
  writeFileSync(join(root, 's.tar'), await packTar([...GOOD, ...members]));
  return open('s.tar');
}

const ESCAPES = [
  ['../evil/install-config.yaml', 'leads out of its folder'],
  ['bad/../../install-config.yaml', 'leads out of its folder'],
  ['bad/..', 'leads out of its folder'],
  ['/etc/passwd', 'has an absolute path'],
  ['C:/bad/install-config.yaml', 'has an absolute path'],
  ['bad\\install-config.yaml', 'has a backslash'],
  ['bad/install-config.yaml\n', 'has control characters'],
  ['bad/\u001b[2J.yaml', 'has control characters'],
] as const;

describe('a member whose name leads elsewhere', () => {
  it.each(ESCAPES)('is refused by name, and the valid sites stay: %j', async (name, problem) => {
    for (const sites of [await openZip([{ name }]), await openTar([{ name }])]) {
      expect(sites.names).toEqual(['good']);
      const problems = showProblems(sites, root).filter((line) => line.startsWith('error'));
      expect(problems.join('\n')).toContain(problem);
      expect(problems.join('\n')).toContain(
        JSON.stringify(name).slice(1, -1).replaceAll('\\\\', '\\'),
      );
      expect(Object.keys(await readAllSites(sites))).toEqual(['good']);
    }
    expect(readdirSync(root).sort()).toEqual(['s.tar', 's.zip']);
  });

  it('is never opened, for any name', async () => {
    const name = fc.string({ unit: 'binary', minLength: 1, maxLength: 40 });
    const path = fc.oneof(name, fc.constantFrom('..', '.', 'good', 'a')).map((last) => `x/${last}`);
    await fc.assert(
      fc.asyncProperty(fc.oneof(path, name), async (text) => {
        const sites = await openZip([{ name: text, text: 'x' }]);
        expect(sites.names).toContain('good');
        const { good } = await readAllSites(sites);
        for (const key of Object.keys(good ?? {})) expect(key).not.toContain('..');
      }),
      { numRuns: runs(100) },
    );
  });
});

describe('a member that is not a file', () => {
  it('is refused in a tar, and so is its site', async () => {
    const linkname = '/etc/passwd';
    const sites = await openTar([
      { name: 'a/install-config.yaml', type: 'symlink', linkname },
      { name: 'a/image-based-config.yaml', text: 'x' },
      { name: 'b/install-config.yaml', type: 'link', linkname: 'good/install-config.yaml' },
      { name: 'c/extra-manifests/x.yaml', type: 'fifo' },
      { name: 'd/extra-manifests', type: 'symlink', linkname: '/etc' },
      { name: 'e/extra-manifests/null.yaml', type: 'character-device', devmajor: 1, devminor: 3 },
    ]);
    expect(sites.names).toEqual(['good']);
    expect(showProblems(sites, root)).toEqual(
      expect.arrayContaining([
        'error s.tar/a/install-config.yaml: is a symbolic link',
        'error s.tar/b/install-config.yaml: is a hard link',
        'error s.tar/c/extra-manifests/x.yaml: is neither a file nor a folder',
        'error s.tar/d/extra-manifests: is a symbolic link',
        'error s.tar/e/extra-manifests/null.yaml: is neither a file nor a folder',
      ]),
    );
  });

  it('is refused in a zip, and so are encrypted members and unknown compressions', async () => {
    const sites = await openZip([
      { name: 'a/install-config.yaml', text: '/etc/passwd', mode: 0o120777 },
      { name: 'b/install-config.yaml', mode: 0o010644 },
      { name: 'c/install-config.yaml', flags: 1 },
      { name: 'd/install-config.yaml', method: 14 },
    ]);
    expect(sites.names).toEqual(['good']);
    expect(showProblems(sites, root)).toEqual(
      expect.arrayContaining([
        'error s.zip/a/install-config.yaml: is a symbolic link',
        'error s.zip/b/install-config.yaml: is a device, a pipe or a socket',
        'error s.zip/c/install-config.yaml: is encrypted',
        'error s.zip/d/install-config.yaml: is compressed by method 14, and only deflate is read',
      ]),
    );
  });

  it('is refused in a folder, and not followed', async () => {
    writeTree(join(root, 'sites'), { ...siteFiles('good'), ...siteFiles('a'), ...siteFiles('b') });
    rmSync(join(root, 'sites/a/install-config.yaml'));
    symlinkSync('/etc/passwd', join(root, 'sites/a/install-config.yaml'));
    symlinkSync('/etc', join(root, 'sites/b/extra-manifests'));
    await runProcess('mkfifo', [join(root, 'sites/b/pipe')]);
    const sites = await open('sites');
    expect(sites.names).toEqual(['good']);
    expect(showProblems(sites, root)).toEqual(
      expect.arrayContaining([
        'error sites/a/install-config.yaml: is a symbolic link',
        'error sites/b/extra-manifests: is a symbolic link',
        'error sites/b/pipe: is a device, a pipe or a socket',
      ]),
    );
  });
});

it('an unreadable folder stops only its site', async () => {
  writeTree(join(root, 'sites'), { ...siteFiles('good'), ...siteFiles('a') });
  chmodSync(join(root, 'sites/a'), 0);
  const sites = await asUser([root], () => open('sites'));
  expect(sites.names).toEqual(['good']);
  expect(showProblems(sites, root)).toContain('error sites/a: cannot be read');
  chmodSync(join(root, 'sites/a'), 0o700);
});

it('a member that appears twice is refused, and so is one that differs only in case or Unicode form', async () => {
  const twins = [
    ...GOOD.map((member) => ({ ...member, name: member.name.replace('good', 'a') })),
    ...[{ name: 'a/install-config.yaml' }, { name: 'a/extra-manifests/x.yaml' }],
    ...[{ name: 'a/extra-manifests/X.yaml' }, { name: 'a/extra-manifests/é.yaml' }],
    { name: 'a/extra-manifests/e\u0301.yaml' },
  ];
  for (const sites of [await openZip(twins), await openTar(twins)]) {
    expect(sites.names).toEqual(['good']);
    const problems = showProblems(sites, root).map((line) => line.replace(/^.*?\/a\//, ''));
    expect(problems).toEqual([
      'install-config.yaml: appears twice',
      'extra-manifests/X.yaml: appears twice, also as extra-manifests/x.yaml',
      'extra-manifests/e\u0301.yaml: appears twice, also as extra-manifests/é.yaml',
    ]);
  }
});

describe('an archive that unpacks to far more than its size', () => {
  it('is refused when its members share the same bytes', async () => {
    const members = Array.from({ length: 50 }, (_, index) => ({
      name: `s${index}/install-config.yaml`,
      text: 'x'.repeat(10_000),
      stored: true,
      overlaps: index > 0,
    }));
    await expect(openZip(members)).rejects.toMatchObject({ code: 'sites.too-large' });
  });

  it('is refused if it is a .tar.gz of mostly zeros', async () => {
    writeFileSync(join(root, 's.tar.gz'), gzipSync(Buffer.alloc(80 << 20)));
    await expect(open('s.tar.gz')).rejects.toMatchObject({
      code: expect.stringMatching(/^sites\.(too-large|unknown-kind)$/) as unknown,
    });
    const big = [{ name: 'a/x.bin', text: '\0'.repeat(80 << 20) }];
    writeFileSync(join(root, 's.tar.gz'), await packTarGz(big));
    await expect(open('s.tar.gz')).rejects.toMatchObject({ code: 'sites.too-large' });
  });

  it('gives no member of a .zip whose size is not the declared one', async () => {
    const text = 'x'.repeat(1000);
    const lies = [
      [{ declaredSize: 10 }, 'it should have 10 bytes, but has more'],
      [{ declaredSize: 10, stored: true }, 'it should have 10 bytes, but has 1000'],
      [{ declaredSize: 0 }, 'it should have 0 bytes, but has more'],
      [{ declaredSize: 1001 }, 'it should have 1001 bytes, but has 1000'],
      [{ declaredSize: 1001, stored: true }, 'it should have 1001 bytes, but has 1000'],
      [{ declaredSize: 1000, crc: 1 }, 'its checksum is wrong'],
    ] as const;
    for (const [lie, problem] of lies) {
      for (const flags of [0, HAS_DESCRIPTOR]) {
        const sites = await openZip(siteWith({ text, flags, ...lie }));
        expect(sites.names).toEqual(['a', 'good']);
        await expect(sites.open('a')).rejects.toMatchObject({
          code: 'sites.damaged',
          message: expect.stringContaining(
            `a/install-config.yaml cannot be unpacked: ${problem}`,
          ) as unknown,
        });
        expect((await sites.open('good')).files).toHaveLength(2);
      }
    }
  });
});

/** APPNOTE 4.4.4, bit 3: sizes and checksum follow the content. The central directory has them. */
const HAS_DESCRIPTOR = 8;

/** The two members of site "a"; its install-config.yaml is as given. */
const siteWith = (config: Partial<ZipMember>): ZipMember[] => [
  { name: 'a/install-config.yaml', ...config },
  { name: 'a/image-based-config.yaml', text: 'x' },
];

describe('an archive that is damaged', () => {
  it('is refused as a whole if it was cut short', async () => {
    const zip = packZip(GOOD);
    const tar = await packTar(GOOD);
    const cuts = {
      's.zip': zip.subarray(0, zip.length - 30),
      's.tar': tar.subarray(0, 700),
      's.tar.gz': (await packTarGz(GOOD)).subarray(0, 120),
    };
    for (const [name, bytes] of Object.entries(cuts)) {
      writeFileSync(join(root, name), bytes);
      await expect(open(name)).rejects.toMatchObject({ code: 'sites.damaged' });
    }
  });

  it('is refused as a whole if its Zip64 end record lies', async () => {
    const lies = [
      [COUNT_OF_MEMBERS, 0xffff_ffffn, 'sites.too-large'],
      [DIRECTORY_AT, 1n << 40n, 'sites.damaged'],
      [DIRECTORY_AT, 1n << 62n, 'sites.damaged'],
      [END_RECORD_AT, 1n << 40n, 'sites.damaged'],
      [END_RECORD_AT, 1n << 62n, 'sites.damaged'],
    ] as const;
    for (const [fromEnd, value, code] of lies) {
      const zip = packZip(GOOD, { zip64: true });
      zip.writeBigUInt64LE(value, zip.length - fromEnd);
      writeFileSync(join(root, 's.zip'), zip);
      await expect(open('s.zip')).rejects.toMatchObject({ code });
    }
  });

  it('never hangs or crashes, whichever byte is changed', async () => {
    const forms = {
      's.zip': packZip(GOOD),
      's64.zip': packZip(GOOD, { zip64: true }),
      's.tar': await packTar(GOOD),
      's.tar.gz': await packTarGz(GOOD),
    };
    const form = fc.constantFrom(...Object.entries(forms));
    await fc.assert(
      fc.asyncProperty(form, fc.nat(), fc.nat(255), async ([name, bytes], at, put) => {
        const changed = Buffer.from(bytes);
        changed[at % changed.length] = put;
        writeFileSync(join(root, name), changed);
        await open(name)
          .then(readAllSites)
          .catch((error: unknown) => {
            expect(error).toMatchObject({ code: expect.stringMatching(/^sites\./) as unknown });
          });
      }),
      { numRuns: runs(300) },
    );
  });
});

/** APPNOTE 4.3.14 to 4.3.16: bytes from the field to the end of an archive with Zip64. */
const COUNT_OF_MEMBERS = 22 + 20 + 24;
const DIRECTORY_AT = 22 + 20 + 8;
const END_RECORD_AT = 22 + 12;
