import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { commandOf } from '../../src/sites/state/generations.ts';
import { runLine } from '../support/run-line.ts';

/** A folder whose name a shell would take apart. */
const FOLDER = "my site's $(touch x) folder";
const SECRET = '{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNz"}}}';

let cwd: string;
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'sealift-printed-'));
  await mkdir(join(cwd, FOLDER));
});
afterEach(() => rm(cwd, { recursive: true }));

const run = (...args: readonly string[]) => runLine(args, { cwd });

/** The words that a shell makes of the command in a text, after the name of the program. */
function takeCommand(text: string): readonly string[] {
  const [, command = ''] =
    /(?:next:|then run:|list (?:them|all):) (?:.* )?(sealift .*)$/m.exec(text) ?? [];
  expect(command).not.toBe('');
  const words = execFileSync('sh', ['-c', `printf '%s\\0' ${command}`], { cwd, encoding: 'utf8' });
  return words.split('\0').slice(1, -1);
}

describe('a command that the program prints runs as it is printed', () => {
  it.each(['minimal', 'ove'])('after init --template %s', async (template) => {
    const { stdout } = await run('init', '--template', template, FOLDER);
    await writeFile(join(cwd, FOLDER, 'pull-secret.json'), SECRET);
    const { exitCode, stdout: verdict } = await run(...takeCommand(stdout), '--strict');
    expect([exitCode, verdict]).toEqual([0, `${FOLDER}/appliance-config.yaml is valid\n`]);
  });

  it('after init --template sites, and after the build of the sites', async () => {
    const { stdout } = await run('init', '--template', 'sites', FOLDER);
    const file = join(cwd, FOLDER, 'template/install-config.yaml');
    const text = await readFile(file, 'utf8');
    await writeFile(file, text.replace(/^pullSecret: .*$/m, `pullSecret: '${SECRET}'`));
    const [group = '', validate = '', ...words] = takeCommand(stdout);
    expect(await run(group, validate, ...words)).toMatchObject({
      exitCode: 0,
      stdout: '2 sites are valid\n',
    });
    const built = await run(group, 'build', ...words, '--out', `${FOLDER}/isos`);
    const shown = await run(...takeCommand(built.stdout));
    expect(shown.exitCode).toBe(0);
    expect(shown.stdout).toContain('label ');
    // The hint of a generation that does not exist.
    const wanted = ['--use-generation', 'site-0001=7', '--out', `${FOLDER}/isos`];
    const refused = await run(group, 'build', ...words, ...wanted);
    const listed = await run(...takeCommand(refused.stderr));
    expect(listed).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('generation 1') as string,
    });
  });

  it('after import imageset', async () => {
    const file = join(FOLDER, 'imageset.yaml');
    await writeFile(
      join(cwd, file),
      'apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\nmirror:\n' +
        '  platform: {channels: [{name: stable-4.20, minVersion: 4.20.3, maxVersion: 4.20.3}]}\n',
    );
    const output = join(FOLDER, '-a.yaml');
    const { stdout } = await run('import', 'imageset', file, '--output', output, '--allow-losses');
    await writeFile(join(cwd, FOLDER, 'pull-secret.json'), SECRET);
    const { exitCode } = await run(...takeCommand(stdout));
    expect(exitCode).toBe(0);
  });

  it('about the directory of one site, too', () => {
    expect(commandOf({ iso: '/a b/imagebasedconfig.iso' }, 'site')).toBe(
      "sealift config-iso generations '/a b' --drop-in",
    );
  });
});

describe('validate --strict', () => {
  it('refuses a secret that this machine does not have, which else is a note', async () => {
    const text = 'apiVersion: v1beta1\nocpRelease: {version: "4.21"}\npullSecret: env:ABSENT\n';
    await writeFile(join(cwd, 'a.yaml'), text);
    expect((await run('validate', 'a.yaml')).exitCode).toBe(0);
    const { exitCode, stderr } = await run('validate', '--strict', 'a.yaml');
    expect(exitCode).toBe(3);
    expect(stderr).toMatch(
      /^a\.yaml:3:13: pullSecret: the environment variable ABSENT is not set$/m,
    );
    const { stdout } = await run('validate', '--strict', '-o', 'json', 'a.yaml');
    expect(JSON.parse(stdout)).toMatchObject({ valid: false, notes: [] });
  });

  it('refuses what is noted about sites, such as a column that no file needs', async () => {
    await run('init', '--template', 'sites', '.');
    const file = join(cwd, 'template/install-config.yaml');
    const text = await readFile(file, 'utf8');
    await writeFile(file, text.replace(/^pullSecret: .*$/m, `pullSecret: '${SECRET}'`));
    const table = await readFile(join(cwd, 'sites.csv'), 'utf8');
    const lines = table.trimEnd().split('\n');
    const rows = lines.map((line, index) => `${line},${index === 0 ? 'rack' : 'r1'}\n`);
    await writeFile(join(cwd, 'sites.csv'), rows.join(''));
    const call = ['config-iso', 'validate', 'sites.csv', '--template', 'template'];
    const noted = await run(...call);
    expect(noted).toMatchObject({ exitCode: 0, stdout: '2 sites are valid\n' });
    expect(noted.stderr).toContain(
      'sites.csv:1: note: column "rack" has no hole in the template\n',
    );
    const refused = await run(...call, '--strict');
    expect(refused.exitCode).toBe(3);
    expect(refused.stderr).toContain('sites.csv:1: column "rack" has no hole in the template\n');
  });
});

describe('config-iso validate', () => {
  it('refuses with --strict what nmstatectl did not see, and warns without', async () => {
    await run('init', '--template', 'sites', '.');
    const file = join(cwd, 'template/install-config.yaml');
    const text = await readFile(file, 'utf8');
    await writeFile(file, text.replace(/^pullSecret: .*$/m, `pullSecret: '${SECRET}'`));
    const call = ['config-iso', 'validate', 'sites.csv', '--template', 'template'];
    const warned = await run(...call); // without PATH
    expect(warned).toMatchObject({ exitCode: 0 });
    expect(warned.stderr).toContain('warning: nmstatectl is not installed');
    const refused = await run(...call, '--strict');
    expect(refused.exitCode).toBe(6);
    expect(refused.stderr).toContain('error: nmstatectl is not installed');
    expect(refused.stderr).toContain('[tool.missing]');
  });

  it('reports a mistake of a template once, and a wrong cell by row, site and column', async () => {
    await run('init', '--template', 'sites', '.');
    const file = join(cwd, 'template/install-config.yaml');
    const text = await readFile(file, 'utf8');
    await writeFile(
      file,
      text.replace(/^pullSecret: .*$/m, `pullSecret: '${SECRET}'\nnonsense: true`),
    );
    const table = await readFile(join(cwd, 'sites.csv'), 'utf8');
    await writeFile(
      join(cwd, 'sites.csv'),
      table.replace('edge.example.com,host-0002', 'Edge_x,host-0002'),
    );
    const { stderr, exitCode } = await run(
      'config-iso',
      'validate',
      'sites.csv',
      '--template',
      'template',
    );
    expect(exitCode).toBe(3);
    expect(stderr.match(/nonsense: /g)).toHaveLength(1);
    expect(stderr).toMatch(
      /^template\/install-config\.yaml:\d+:1: nonsense: [^]*?\n {2}in 2 sites: site-0001, site-0002\n/m,
    );
    expect(stderr).toMatch(/^sites\.csv:3: baseDomain: column "baseDomain" of site site-0002: /m);
  });
});
