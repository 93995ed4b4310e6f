import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
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
  type Tree,
} from '../../support/site-archives.ts';
import { requireTool } from '../../support/tools.ts';

const { signal } = new AbortController();
let root = '';
const opened: SiteList[] = [];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sites-'));
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((sites) => sites.close()));
  rmSync(root, { recursive: true });
});

async function list(name: string): Promise<SiteList> {
  const sites = await listSites(join(root, name), { signal });
  opened.push(sites);
  return sites;
}

async function readAll(sites: SiteList): Promise<Record<string, Tree>> {
  const all: Record<string, Tree> = {};
  for (const name of sites.names) {
    const { files } = await sites.open(name);
    all[name] = Object.fromEntries(
      files.map(({ path, bytes }) => [path, Buffer.from(bytes).toString()]),
    );
  }
  await sites.close();
  return all;
}

const show = ({ problems }: SiteList): string[] =>
  problems.map(
    ({ severity, file, problem }) => `${severity} ${file.replace(`${root}/`, '')}: ${problem}`,
  );

const TWO = { ...siteFiles('alpha'), ...siteFiles('beta', { 'extra-manifests/a.yaml': 'a: 1\n' }) };
const TWO_READ = {
  alpha: {
    'image-based-config.yaml': 'hostname: alpha\n',
    'install-config.yaml': 'metadata: {name: alpha}\n',
  },
  beta: {
    'extra-manifests/a.yaml': 'a: 1\n',
    'image-based-config.yaml': 'hostname: beta\n',
    'install-config.yaml': 'metadata: {name: beta}\n',
  },
};

async function writeForms(tree: Tree, top = ''): Promise<readonly string[]> {
  writeTree(join(root, 'folder'), tree);
  writeFileSync(join(root, 's.zip'), packZip(membersOf(tree, top)));
  writeFileSync(join(root, 's.tar'), await packTar(membersOf(tree, top)));
  writeFileSync(join(root, 's.tar.gz'), await packTarGz(membersOf(tree, top)));
  return ['folder', 's.zip', 's.tar', 's.tar.gz'];
}

describe('sites are read from a folder or an archive of site folders', () => {
  test.each(['', 'top/', './', './top/'])(
    'with "%s" before the names in the archive',
    async (top) => {
      for (const form of await writeForms(TWO, top)) {
        const sites = await list(form);
        expect([form, sites.problems, await readAll(sites)]).toEqual([form, [], TWO_READ]);
      }
    },
  );

  test('a folder of one site is that site, named after the folder', async () => {
    writeTree(root, TWO);
    expect(await readAll(await list('beta'))).toEqual({ beta: TWO_READ.beta });
  });

  test('an archive of one site is named after its folder, or after the archive', async () => {
    const alpha = membersOf(siteFiles('alpha'));
    writeFileSync(join(root, 'x.zip'), packZip(alpha));
    expect((await list('x.zip')).names).toEqual(['alpha']);
    const bare = alpha.map(({ name, text }) => ({ name: name.replace('alpha/', ''), text }));
    writeFileSync(join(root, 'gamma.tar.gz'), await packTarGz(bare));
    writeFileSync(join(root, 'gamma.zip'), packZip(bare));
    expect((await list('gamma.tar.gz')).names).toEqual(['gamma']);
    expect((await list('gamma.zip')).names).toEqual(['gamma']);
  });

  test('files are shown by the source and their path in it', async () => {
    await writeForms(TWO);
    const { files } = await (await list('s.zip')).open('alpha');
    expect(files.map(({ shownAs }) => shownAs)).toEqual([
      `${root}/s.zip/alpha/image-based-config.yaml`,
      `${root}/s.zip/alpha/install-config.yaml`,
    ]);
  });

  test('hidden files, read-me files and the files of macOS are ignored', async () => {
    const tree = {
      ...TWO,
      '.git/config': '',
      'README.md': '',
      'alpha/.DS_Store': '',
      '__MACOSX/alpha/._x': '',
    };
    for (const form of await writeForms(tree, 'top/')) {
      const sites = await list(form);
      expect([form, sites.problems, await readAll(sites)]).toEqual([form, [], TWO_READ]);
    }
  });

  test('a file that is not an input gets one warning, and the site is read', async () => {
    const strange = {
      'notes.txt': '',
      'auth/kubeconfig': '',
      'auth/password': '',
      'extra-manifests/a.txt': '',
      'extra-manifests/d/a.yaml': '',
    };
    for (const form of await writeForms({
      ...TWO,
      ...siteFiles('alpha', strange),
      'hosts.txt': '',
    })) {
      const sites = await list(form);
      expect(sites.names).toEqual(['alpha', 'beta']);
      expect(
        show(sites)
          .map((line) => line.replace(/ is not used.*/, ''))
          .sort(),
      ).toEqual(
        [
          'alpha/auth',
          'alpha/extra-manifests/a.txt',
          'alpha/extra-manifests/d',
          'alpha/notes.txt',
          'hosts.txt: belongs to no site',
        ].map((path) =>
          path.includes(': ') ? `warning ${form}/${path}` : `warning ${form}/${path}:`,
        ),
      );
    }
  });

  test('a manifest with a long name gets a warning', async () => {
    writeTree(root, siteFiles('s/alpha', { [`extra-manifests/${'m'.repeat(26)}.yaml`]: '' }));
    expect(show(await list('s'))[0]).toContain('has a name of 31 characters');
  });

  test('no file is changed or left behind', async () => {
    const forms = await writeForms(TWO);
    const before = readdirSync(root, { recursive: true });
    const temporary = mkdtempSync(join(tmpdir(), 'no-others-'));
    vi.stubEnv('TMPDIR', temporary); // other tests have files in the usual one
    for (const form of forms) await readAll(await list(form));
    vi.unstubAllEnvs();
    expect(readdirSync(root, { recursive: true })).toEqual(before);
    expect(readdirSync(temporary)).toEqual([]);
    rmSync(temporary, { recursive: true });
  });
});

describe('an invalid site does not stop the others', () => {
  test('if it lacks a file', async () => {
    mkdirSync(join(root, 'folder/empty'), { recursive: true });
    const tree = { ...TWO, 'gamma/install-config.yaml': '', 'delta/x.txt': '' };
    for (const form of await writeForms(tree)) {
      const sites = await list(form);
      expect(sites.names).toEqual(['alpha', 'beta']);
      expect(show(sites)).toContain(`error ${form}/gamma: has no image-based-config.yaml`);
      expect(show(sites)).toContain(
        `error ${form}/delta: has no install-config.yaml and no image-based-config.yaml`,
      );
    }
    expect(show(await list('folder')).join()).toContain('folder/empty: has no install-config.yaml');
  });

  test.each(['Alpha', 'a_b', '-a', 'a.b', 'ä', 'a'.repeat(64)])(
    'if its name %j is not a valid DNS label',
    async (name) => {
      for (const form of await writeForms({ ...TWO, ...siteFiles(name) })) {
        const sites = await list(form);
        expect(sites.names).toEqual(name === 'Alpha' ? ['beta'] : ['alpha', 'beta']);
        expect(show(sites).join()).toMatch(/DNS label/);
      }
    },
  );

  test('if its name differs from another only in case: both are refused', async () => {
    writeTree(root, { ...siteFiles('s/alpha'), ...siteFiles('s/ALPHA'), ...siteFiles('s/b') });
    const sites = await list('s');
    expect(sites.names).toEqual(['b']);
    expect(show(sites).filter((line) => line.includes('differ only in case'))).toHaveLength(2);
  });

  test('if it has a file larger than 1 MiB, or files of more than 16 MiB', async () => {
    const many = Object.fromEntries(
      Array.from({ length: 17 }, (_, i) => [`extra-manifests/${i}.yaml`, 'x'.repeat(1_000_000)]),
    );
    const tree = {
      ...TWO,
      ...siteFiles('big', { 'extra-manifests/a.yaml': 'x'.repeat((1 << 20) + 1) }),
      ...siteFiles('many', many),
    };
    for (const form of await writeForms(tree)) {
      const sites = await list(form);
      expect([form, await readAll(sites)]).toEqual([form, TWO_READ]);
      expect(show(sites)).toEqual([
        `error ${form}/big/extra-manifests/a.yaml: has 1.0 MiB, but a file may have at most 1.0 MiB`,
        `error ${form}/many: has 16.2 MiB of files, but a site may have at most 16.0 MiB`,
      ]);
    }
  });
});

test.skipIf(!requireTool('tar')).each(['v7', 'gnu', 'posix', 'ustar', 'oldgnu'])(
  'a tar of the format %s is read',
  async (format) => {
    writeTree(join(root, 'in'), TWO);
    await runProcess('tar', [
      `--format=${format}`,
      '-C',
      join(root, 'in'),
      '-cf',
      join(root, 'a'),
      '.',
    ]);
    expect((await list('a')).names).toEqual((await list('in')).names);
  },
);

test('a site that is not in the list cannot be opened', async () => {
  writeTree(root, TWO);
  await expect((await list('.')).open('toString')).rejects.toMatchObject({
    code: 'sites.unknown-name',
  });
});

describe('a source of sites cannot be', () => {
  test('a name that does not exist', async () => {
    await expect(list('absent')).rejects.toMatchObject({ code: 'sites.unreadable' });
  });
  test('a file of another kind', async () => {
    writeFileSync(join(root, 'a.rar'), 'Rar!');
    await expect(list('a.rar')).rejects.toMatchObject({ code: 'sites.unknown-kind' });
  });
  test('a pipe, which may never end, with any name', async () => {
    await runProcess('mkfifo', [join(root, 'a.csv')]);
    await expect(list('a.csv')).rejects.toMatchObject({ code: 'sites.unknown-kind' });
  });
  test('a table without a template, and a template without a table', async () => {
    writeFileSync(join(root, 'a.csv'), 'name\na\n');
    await expect(list('a.csv')).rejects.toMatchObject({ code: 'sites.template' });
    await expect(listSites(root, { template: root, signal })).rejects.toMatchObject({
      code: 'sites.template',
    });
  });
});

test('a folder, a zip, a tar and a tar.gz of the same tree give the same sites', async () => {
  const name = fc.constantFrom('a', 'b', 'c-1', 'README', '.x', 'Bad');
  const file = fc.constantFrom(
    'install-config.yaml',
    'image-based-config.yaml',
    'extra-manifests/a.yaml',
    'extra-manifests/b.json',
    'extra-manifests/c',
    'x',
    '.y/z',
  );
  const tree = fc.dictionary(
    fc.tuple(name, file).map((parts) => parts.join('/')),
    fc.string(),
    { minKeys: 1, maxKeys: 20 },
  );
  await fc.assert(
    fc.asyncProperty(tree, fc.constantFrom('', './', 'top/'), async (files, top) => {
      const seen = [];
      for (const form of await writeForms(files, top)) {
        const sites = await list(form);
        // What stands at the root of a folder is not in a common top folder.
        seen.push([
          show(sites)
            .map((line) =>
              line.replaceAll(`${form}/${top.replace('./', '')}`, '').replaceAll(`${form}/`, ''),
            )
            .sort(),
          await readAll(sites),
        ]);
      }
      rmSync(root, { recursive: true });
      mkdirSync(root);
      const hasTop =
        top === 'top/' && !Object.keys(files).some((path) => /^(a|b|c-1|Bad)\/i/.test(path));
      for (const one of hasTop ? [] : seen.slice(1)) expect(one).toEqual(seen[0]);
    }),
    { numRuns: runs(60) },
  );
});

describe.skipIf(!requireTool('bsdtar'))('archives of bsdtar are read', () => {
  test.each(['zip', 'ustar', 'pax', 'gnutar'])('as %s', async (format) => {
    writeTree(
      join(root, 'sites'),
      // POSIX ustar has room for 100 bytes of a file's own name.
      siteFiles('alpha', {
        [`extra-manifests/${'ü'.repeat(format === 'ustar' ? 40 : 70)}.yaml`]: 'x',
      }),
    );
    await runProcess(
      'bsdtar',
      ['--format', format, '-cf', join(root, 'a'), '-C', join(root, 'sites'), '.'],
      { env: { LC_ALL: 'C.UTF-8', PATH: process.env['PATH'] ?? '' } },
    );
    const sites = await list('a');
    expect(sites.problems.filter(({ severity }) => severity === 'error')).toEqual([]);
    expect(Object.keys((await readAll(sites))['alpha'] ?? {})).toHaveLength(3);
  });
});
