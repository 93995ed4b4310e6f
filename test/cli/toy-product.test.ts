import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { askIso } from '../../src/cli/ask-iso.ts';
import { addReuseOptions, createConfigArgument } from '../../src/cli/options.ts';
import { describeProduct, type ProductTable } from '../../src/cli/product.ts';
import { PRODUCTS } from '../../src/cli/products.ts';
import { createProgram, runProgram } from '../../src/cli/program.ts';
import { createOutputOption } from '../../src/cli/terminal/output.ts';
import { lineOf, say } from '../../src/cli/terminal/report.ts';
import { createLogFormatOption } from '../../src/cli/terminal/progress.ts';
import { readConfigFiles } from '../../src/config/load.ts';
import { createEmptyImage, layOutIso } from '../../src/iso/index.ts';
import { openIso } from '../../src/iso/read/open.ts';
import { mergeMirrorPlan } from '../../src/openshift/mirror/plan.ts';
import { roomOf } from '../../src/outputs/place.ts';
import { checkIsoSize } from '../../src/stages/4-lay-out/check-size.ts';
import type { Decided, IsoProduct } from '../../src/stages/build.ts';
import type { AskedIso } from '../../src/stages/resolved/describe-asked.ts';

/* A product in one page and one row: an ISO with one file, the text of its configuration. */

type ToyRequest = AskedIso & { readonly text: string };
type Toy = { readonly output: string; readonly product: 'toy-iso'; readonly isoSize: number };

const PLAN = mergeMirrorPlan({ images: [], blocked: [] });

// The page.
const TOY_ISO: IsoProduct<ToyRequest, Decided, Toy, Omit<Toy, 'output'>> = {
  name: 'toy-iso',
  async prepare(request, { engine, resolved, takeOver }) {
    resolved.require({ product: 'toy-iso' });
    const places = await takeOver();
    const { text, epoch = 0 } = request;
    const layout = layOutIso({
      base: createEmptyImage({ volumeId: 'TOY', directories: [], epoch }),
      files: [{ path: '/toy.txt', content: { kind: 'bytes', bytes: Buffer.from(text) } }],
      remove: [],
      patches: [],
      epoch,
      ...(places && { places }),
    });
    const space = await engine.run(checkIsoSize, { layout, plan: PLAN, ...roomOf(request) });
    const found = { product: 'toy-iso', releases: [], plan: PLAN, catalogs: [], layout };
    return { ...(await resolved.settle(found)), layout, space };
  },
  describe: ({ output }, { layout }) => ({ output, product: 'toy-iso', isoSize: layout.size }),
  summarize: (_request, { layout }) => ({ product: 'toy-iso', isoSize: layout.size }),
  listBlobs: () => [],
  pour: () => Promise.resolve({ blobs: [], mode: 0o644, lanes: 1 }),
};

// The row.
const TOY_ROW = describeProduct(TOY_ISO, {
  ask(names, flags, host) {
    const files = readConfigFiles(names, {}, host);
    const asked = askIso({ product: 'toy-iso', output: 'toy.iso', files, inputs: [] }, flags, host);
    const access = { build: { insecureRegistries: [] } };
    return { ...asked, access, confidential: [], text: files.files[0].text };
  },
  hasSecrets: false,
  maker: 'a toy',
  config: 'toy.yaml',
  output: 'toy.iso',
  addOptions: (command) =>
    addReuseOptions(command)
      .addArgument(createConfigArgument())
      .option('--output <file>', 'the ISO', 'toy.iso')
      .addOption(createLogFormatOption())
      .addOption(createOutputOption()),
  plans: 'this plan of a toy',
  words: {
    build: { description: 'an ISO with one file', help: '' },
    plan: { description: 'the same for a toy', help: '' },
    lock: { description: 'the same for a toy', help: '' },
  },
  describeReport: ({ output, isUpToDate }) => ({
    title: ['Build of a toy'],
    body: [lineOf(say`${output} ${[isUpToDate ? 'stays' : 'is new']}`)],
  }),
  describePlan: ({ isoSize }) => ({
    title: ['Plan of a toy'],
    body: [lineOf(say`a toy of ${isoSize} bytes`)],
  }),
});

const TABLE: ProductTable = [...PRODUCTS, TOY_ROW];

describe('a product that is one page and one row', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-toy-'));
    await writeFile(join(directory, 'toy.yaml'), 'hello: toy\n');
  });
  afterAll(() => rm(directory, { recursive: true }));

  async function run(...args: string[]) {
    const written = { stdout: '', stderr: '' };
    const collect = (name: keyof typeof written): PassThrough =>
      new PassThrough().on('data', (piece: Buffer) => (written[name] += piece.toString()));
    const host = {
      stdout: collect('stdout'),
      stderr: collect('stderr'),
      cwd: directory,
      redaction: createRedaction(),
      isTTY: false,
      env: {},
      now: Date.now,
      signal: new AbortController().signal,
    };
    const exitCode = await runProgram(args, host, TABLE);
    return { exitCode, ...written };
  }

  it('is planned, locked, built from its lock, and found unchanged', async () => {
    const plan = await run('plan', 'toy-iso', 'toy.yaml', '-o', 'json');
    expect(plan.exitCode, plan.stderr).toBe(0);
    const locked = await run('lock', 'toy-iso', 'toy.yaml');
    expect(locked.exitCode, locked.stderr).toBe(0);
    const built = await run('build', 'toy-iso', 'toy.yaml', '--locked');
    expect(built.stdout, built.stderr).toBe(`${join(directory, 'toy.iso')} is new\n`);
    const bytes = await readFile(join(directory, 'toy.iso'));
    expect(JSON.parse(plan.stdout)).toEqual({ product: 'toy-iso', isoSize: bytes.length });
    const iso = await openIso(join(directory, 'toy.iso'));
    const node = await iso.find('/toy.txt');
    if (node?.kind !== 'file') throw new Error('the ISO has its file');
    expect((await iso.readFile(node, 100)).toString()).toBe('hello: toy\n');
    await iso.close();
    const again = await run('build', 'toy-iso', 'toy.yaml', '--locked');
    expect(again.stdout, again.stderr).toBe(`${join(directory, 'toy.iso')} stays\n`);
  });

  it('is built again when its configuration changes, and replaces the earlier ISO', async () => {
    await writeFile(join(directory, 'toy.yaml'), 'hello: another toy, of more bytes\n');
    const built = await run('build', 'toy-iso', 'toy.yaml');
    expect(built.stdout, built.stderr).toBe(`${join(directory, 'toy.iso')} is new\n`);
  });

  it('is in the help, the completion and the messages that name products', async () => {
    const { stdout } = await run('completion', 'bash');
    for (const command of ['build', 'plan', 'lock']) {
      expect(stdout).toContain(`'${command} toy-iso') words='`);
    }
    const mistyped = await run('build', 'toy-is');
    expect(mistyped.stderr).toContain('did you mean "toy-iso"?');
    const program = createProgram({ ...({} as Parameters<typeof createProgram>[0]) }, false, TABLE);
    const build = program.commands.find((command) => command.name() === 'build');
    expect(build?.helpInformation()).toContain('an ISO with one file');
  });
});
