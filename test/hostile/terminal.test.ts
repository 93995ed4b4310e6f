import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { toPrintable } from '../../src/base/text/words.ts';
import { createProgram, runProgram } from '../../src/cli/program.ts';
import { makeTinyIso } from '../support/tiny-iso.ts';

/** OSC sets the title, CSI clears the screen, CR goes back, U+202E turns text, U+009B is CSI in one. */
const OSC_CSI = '\u001b]0;t\u0007\u001b[2J';
const CR_BIDI = '\r\u202e\u009bab';
/** With invisible ones: zero width, soft hyphen, a tag, a filler, a line separator, a variation. */
const EVIL = `${OSC_CSI}${CR_BIDI}\u200b\u00ad\u{e0041}\u3164\u2028\ufe0fz`;
/** The same inside of YAML and JSON. */
const QUOTED = JSON.stringify(EVIL);

/** What a terminal may get: what is seen, blanks, and line breaks; never the rest. */
const COMMANDING = /(?![\t\n ])[\p{Cc}\p{Cf}\p{Cs}\p{Z}\p{Default_Ignorable_Code_Point}]/u;

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'sealift-terminal-'));
  const iso = Buffer.from(makeTinyIso());
  iso.write(OSC_CSI, iso.indexOf('readme.txt'), 'utf8');
  iso.write(CR_BIDI, iso.indexOf('data.bin'), 'utf8');
  const catalog = [
    { schema: 'olm.package', name: EVIL, defaultChannel: EVIL },
    { schema: 'olm.channel', name: EVIL, package: EVIL, entries: [{ name: EVIL }] },
    { schema: 'olm.bundle', name: EVIL, package: EVIL, image: 'q.io/a/b:1' },
  ];
  const head = 'apiVersion: v1beta1\nocpRelease: {version: "4.21.0"}\n';
  const files: Readonly<Record<string, string | Buffer>> = {
    'evil.iso': iso,
    'a.yaml': `${head}${QUOTED}: ${QUOTED}\noperators: [{catalog: ${QUOTED}}]\n`,
    'imageset.yaml': `apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\n${QUOTED}: 1\n`,
    'installation.yaml': `${QUOTED}: 1\n`,
    'catalog/a.json': catalog.map((item) => JSON.stringify(item)).join('\n'),
    [`sites/${EVIL}/install-config.yaml`]: `metadata: {name: ${QUOTED}}\n${QUOTED}: 1\n`,
    [`sites/${EVIL}/image-based-config.yaml`]: `hostname: ${QUOTED}\n`,
  };
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(root, name, '..'), { recursive: true });
    writeFileSync(join(root, name), content);
  }
});
afterAll(() => {
  rmSync(root, { recursive: true });
});

function createHost() {
  const options = { highWaterMark: 8 << 20 };
  const [stdout, stderr] = [new PassThrough(options), new PassThrough(options)];
  const { signal } = new AbortController();
  const redaction = createRedaction();
  return { stdout, stderr, env: {}, cwd: root, redaction, isTTY: false, signal, now: () => 0 };
}

async function run(args: readonly string[]): Promise<string> {
  const host = createHost();
  await runProgram(args, host);
  const read = (stream: PassThrough): string => (stream.read() as Buffer | null)?.toString() ?? '';
  return read(host.stdout) + read(host.stderr);
}

/** What every command is given whose inputs or words carry such names. */
const CALLS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'init': [['--template', EVIL]],
  'import imageset': [['imageset.yaml'], [EVIL]],
  'validate': [['a.yaml'], ['a.yaml', '-o', 'json'], [EVIL], ['installation.yaml']],
  'config show': [['a.yaml'], ['a.yaml', '-o', 'json'], [EVIL], ['a.yaml', '--set', `${EVIL}=1`]],
  'plan': [['a.yaml'], [EVIL]],
  'plan disk-image': [
    ['a.yaml', '--metal-image', EVIL],
    [EVIL, '--metal-image', 'evil.iso'],
    ['--size', EVIL],
  ],
  'plan deployment-iso': [
    ['a.yaml', '--metal-image', EVIL],
    ['a.yaml', '--metal-image', 'evil.iso', '--target-device', EVIL],
  ],
  'plan upgrade-iso': [['a.yaml'], [EVIL]],
  'plan installation-iso': [['installation.yaml'], [EVIL]],
  'build': [['a.yaml'], [EVIL]],
  'build disk-image': [
    ['a.yaml', '--metal-image', EVIL],
    [EVIL, '--metal-image', 'evil.iso'],
    ['--size', EVIL],
    ['--output', `s3://${EVIL}/a`, '--metal-image', 'evil.iso'],
  ],
  'build deployment-iso': [
    ['a.yaml', '--metal-image', EVIL],
    ['a.yaml', '--metal-image', 'evil.iso', '--target-device', EVIL],
    ['a.yaml', '--metal-image', 'evil.iso', '--post-script', EVIL],
  ],
  'build upgrade-iso': [['a.yaml'], [EVIL]],
  'build installation-iso': [
    ['installation.yaml', '--base-iso', EVIL],
    [EVIL, '--base-iso', EVIL],
    [`--${EVIL}`],
  ],
  'cache ls': [['.'], [EVIL]],
  'cache prune': [
    ['.', '--max-size', EVIL],
    [EVIL, '--max-size', '1B'],
  ],
  'cache verify': [['.'], [EVIL]],
  'lock': [['a.yaml'], [EVIL]],
  'lock disk-image': [['a.yaml', '--metal-image', EVIL]],
  'lock deployment-iso': [['a.yaml', '--metal-image', EVIL]],
  'lock upgrade-iso': [['a.yaml'], [EVIL]],
  'lock installation-iso': [
    ['installation.yaml', '--base-iso', EVIL],
    [EVIL, '--base-iso', EVIL],
  ],
  'reproduce': [
    ['evil.iso', '--config', EVIL],
    [EVIL, '--config', 'a.yaml'],
  ],
  'why': [['a.yaml'], [EVIL, EVIL], ['a', '--iso', 'evil.iso'], [EVIL, '--iso', EVIL]],
  'resources': [['a.yaml'], ['--output', EVIL, EVIL]],
  'catalog list': [['file:catalog'], ['file:catalog', '-o', 'json'], [EVIL], [`file:${EVIL}`]],
  'catalog show': [['file:catalog', '--full'], ['file:catalog', EVIL], [`file:${EVIL}`]],
  'config-iso build': [
    ['sites', '--out', 'out'],
    [EVIL, '--out', EVIL],
  ],
  'config-iso check': [
    ['evil.iso', '--medium', EVIL],
    [EVIL, '--medium', 'evil.iso'],
  ],
  'config-iso diff': [
    ['evil.iso', 'evil.iso'],
    [EVIL, EVIL],
  ],
  'config-iso export': [
    ['sites', '--as', 'acm-import'],
    [EVIL, '--as', 'bmh', '--cluster-image-set', EVIL],
  ],
  'config-iso generations': [['--keys', EVIL], [EVIL]],
  'config-iso show': [['evil.iso'], [EVIL]],
  'config-iso validate': [['sites'], ['sites', '-o', 'json'], [EVIL]],
  'inspect': [['evil.iso'], ['evil.iso', '-o', 'json'], [EVIL]],
  'diff': [
    ['evil.iso', 'evil.iso'],
    [EVIL, 'evil.iso', '-o', 'markdown'],
  ],
  'extract pxe': [
    ['evil.iso', '--out', EVIL],
    [EVIL, '--out', '.'],
  ],
  'extract rootfs': [
    ['evil.iso', '--out', EVIL],
    [EVIL, '--out', '.'],
  ],
  'extract minimal-iso': [
    ['evil.iso', '--out', EVIL],
    [EVIL, '--out', '.', '--rootfs-url', EVIL],
  ],
  'customize': [
    ['evil.iso', '--show'],
    [EVIL, '--in-place', '--hostname', EVIL],
    ['evil.iso', '--in-place', '--ssh-key', EVIL, '--infraenv', EVIL],
    ['evil.iso', '--in-place', '--site', EVIL],
    ['evil.iso', '--in-place', '--site', 'evil.iso'],
  ],
  'delta': [
    ['evil.iso', EVIL, '--output', EVIL],
    [EVIL, 'evil.iso', '--output', 'new.delta'],
  ],
  'apply': [
    ['evil.iso', EVIL, '--output', EVIL],
    [EVIL, 'evil.iso', '--output', 'new.iso'],
  ],
  'repair': [
    ['evil.iso', '--from', EVIL],
    [EVIL, '--from', 'evil.iso'],
  ],
  'push': [
    ['evil.iso', EVIL],
    ['evil.iso', `oci://${EVIL}`],
    [EVIL, 'oci://127.0.0.1:1/a/b:c', '--mount-from', EVIL],
    ['evil.iso', 'oci://127.0.0.1:1/a/b:c'],
  ],
  'pull': [
    [EVIL, '--output', 'pulled.iso'],
    [`oci://127.0.0.1:1/a/${EVIL}`, '--output', 'pulled.iso'],
    ['oci://127.0.0.1:1/a/b:c', '--output', EVIL, '--retry-for', '0s'],
  ],
  'ls': [['evil.iso', '-R'], ['evil.iso', '-lR'], ['evil.iso', '-R', '-o', 'json'], [EVIL]],
  'cat': [
    ['evil.iso', EVIL],
    [EVIL, 'a'],
  ],
  'ignition show': [['evil.iso'], [EVIL]],
  'extract installer': [[EVIL, '--out', EVIL], [`--${EVIL}`]],
  'verify': [['evil.iso'], [EVIL]],
  'rehearse': [
    ['evil.iso'],
    ['evil.iso', '--from', EVIL],
    ['evil.iso', '--release', EVIL],
    ['evil.iso', '--date', EVIL],
    ['evil.iso', '--site', EVIL],
    [EVIL, '--config-image', EVIL],
  ],
  'serve': [
    ['--data', EVIL, '--key', EVIL],
    ['--data', EVIL, '--key', `file:${EVIL}`],
    ['--data', EVIL, '--key', 'env:A', '--listen', EVIL, '--public-url', EVIL],
  ],
  'serve doctor': [
    ['--data', EVIL, '--key', EVIL],
    ['--data', EVIL, '--key', `file:${EVIL}`, '--store', EVIL, '--audit-log', `${EVIL}/${EVIL}`],
  ],
  'serve rekey': [
    ['--data', EVIL, '--key', EVIL],
    ['--data', EVIL, '--key', `file:${EVIL}`, '--previous-key', `file:${EVIL}`],
  ],
  'audit verify': [['evil.iso'], [EVIL], ['evil.iso', '--expect', EVIL]],
  'token keys': [
    ['--out', `${EVIL}/${EVIL}`],
    ['--out', 'evil.iso'],
  ],
  'token issue': [
    ['--private-key', EVIL, '--user', 'a'],
    ['--private-key', `file:${EVIL}`, '--user', EVIL],
    ['--private-key', 'file:evil.iso', '--user', 'a', '--org', EVIL],
    ['--private-key', 'file:evil.iso', '--user', 'a', '--lifetime', EVIL],
  ],
  'registry serve': [['evil.iso'], [EVIL], ['evil.iso', '--port', EVIL], ['--host', EVIL, EVIL]],
  'completion': [[EVIL]],
  'explain': [[EVIL]],
  'help': [[EVIL]],
  'version': [[`--${EVIL}`]],
};

const listCommands = (parent: Command, prefix = ''): readonly string[] =>
  parent.commands.flatMap((command) => {
    const name = `${prefix}${command.name()}`;
    const below = listCommands(command, `${name} `);
    return below.length > 0 && !(name in CALLS) ? below : [name, ...below];
  });

it('every command is tested with names that control a terminal', () => {
  expect(Object.keys(CALLS)).toEqual(
    expect.arrayContaining([...listCommands(createProgram(createHost()))]),
  );
});

describe('control characters in file names, keys, values and arguments are escaped by', () => {
  it.each(Object.keys(CALLS))('%s', async (name) => {
    let all = '';
    for (const args of CALLS[name] ?? []) {
      const printed = await run([...name.split(' '), ...args]);
      expect(COMMANDING.exec(printed)?.input).toBeUndefined();
      all += printed;
    }
    expect(all).toMatch(/\\u001b/);
  });
});

/** A line of its own, which a reader takes for one of the program. */
const FORGED = 'a\nerror: FORGED';

describe('no argument of the command line can begin a line of the output of', () => {
  it.each(Object.keys(CALLS))('%s', async (name) => {
    for (const args of [
      ...(CALLS[name] ?? []),
      [FORGED],
      ['--output', FORGED],
      ['--out', FORGED],
    ]) {
      const words = args.map((word) => word.replaceAll(EVIL, FORGED));
      const printed = await run([...name.split(' '), ...words]);
      expect(printed).not.toMatch(/^error: FORGED/m);
    }
  });
});

it('a file name in an ISO is printed escaped, on its own line', async () => {
  const lines = (await run(['ls', 'evil.iso', '-R'])).trimEnd().split('\n');
  expect(lines).toContain(`/${toPrintable(OSC_CSI)}`);
  expect(lines).toContain(`/sub/${toPrintable(CR_BIDI)}`);
});

it('the JSON output of a listing has the name itself', async () => {
  const entries = JSON.parse(await run(['ls', 'evil.iso', '-R', '-o', 'json'])) as {
    readonly path: string;
  }[];
  expect(entries.map(({ path }) => path)).toContain(`/${OSC_CSI}`);
});

it.each([
  ['a tag', '\u{e0041}', '\\udb40\\udc41'],
  ['half of a pair', '\ud800', '\\ud800'],
  ['a zero width joiner', '\u200d', '\\u200d'],
  ['a line separator', '\u2029', '\\u2029'],
  ['a no-break space', '\u00a0', '\\u00a0'],
  ['a letter of another script', '\u00e9\u4e2d', '\u00e9\u4e2d'],
])('%s is printed with the escape of JSON if it needs one', (_, text, printed) => {
  expect(toPrintable(text)).toBe(printed);
});
