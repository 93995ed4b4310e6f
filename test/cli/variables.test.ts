import type { Command, Option } from 'commander';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import {
  createOptionVariables,
  isRelaxing,
  isRepeated,
  listVariables,
  variableNameOf,
} from '../../src/cli/variables.ts';
import { runLine } from '../support/run-line.ts';
import { createSilentProgram } from '../support/silent-program.ts';

let cwd: string;
beforeAll(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'sealift-variables-'));
  await writeFile(join(cwd, 'x.json'), '{}');
});
afterAll(() => rm(cwd, { recursive: true }));

const PROGRAM = createSilentProgram();

/** The command of some words, with all that these words set, and no action. */
async function parse(...words: readonly string[]): Promise<Command> {
  const program = createSilentProgram(cwd);
  let found: Command | undefined;
  const replace = (command: Command): void => {
    command.action(() => undefined);
    command.commands.forEach(replace);
  };
  program.commands.forEach(replace);
  program.hook('preAction', (_program, action) => {
    found = action;
  });
  await program.parseAsync([...words], { from: 'user' });
  if (found === undefined) throw new Error('no command was run');
  return found;
}

/** The options of a command line under an environment. */
async function take(
  env: NodeJS.ProcessEnv,
  ...words: readonly string[]
): Promise<Record<string, unknown>> {
  const command = await parse(...words);
  createOptionVariables(env).take(command);
  return command.opts();
}

const ALL: readonly Option[] = [...listVariables(PROGRAM).values()].flatMap((options) =>
  options.map(({ option }) => option),
);

describe('the table of variables', () => {
  it('has every option that help shows, under a name that one rule makes', () => {
    const listed = (command: Command): readonly Option[] => [
      ...command.createHelp().visibleOptions(command),
      ...command.commands.flatMap(listed),
    ];
    const shown = listed(PROGRAM).filter(({ long }) => long !== '--help' && long !== '--version');
    expect(new Set(shown.map(variableNameOf))).toEqual(new Set(listVariables(PROGRAM).keys()));
    expect(shown.length).toBeGreaterThan(300);
    for (const name of listVariables(PROGRAM).keys())
      expect(name).toMatch(/^SEALIFT(?:_[A-Z0-9]+)+$/);
  });

  /** Values that some option accepts. */
  const VALUES = ['address', '1', 'https://a.example', '10.0.0.1', 'ack-1', '4.20', 'a=b'];

  it.each([...new Map(ALL.map((option) => [option.flags, option])).values()])(
    'knows whether $flags collects its values',
    (option) => {
      const parsed = VALUES.flatMap((value) => {
        try {
          return [option.parseArg?.(value, option.defaultValue as unknown)];
        } catch {
          return [];
        }
      });
      const collects = option.variadic || parsed.some((value) => Array.isArray(value));
      expect(isRepeated(option)).toBe(collects);
    },
  );

  it('marks every option that allows something or trusts another host', () => {
    const relaxing = ALL.filter(({ long }) =>
      /^--(?:allow|insecure|trusted|force)/.test(long ?? ''),
    );
    expect(relaxing.length).toBeGreaterThan(10);
    expect(relaxing.filter((option) => !isRelaxing(option))).toEqual([]);
  });
});

describe('an option that the environment sets', () => {
  it('has the value that the command line would give', async () => {
    const env = { SEALIFT_CONCURRENCY: '3', SEALIFT_RETRY_FOR: '2m', SEALIFT_WORK_DIR: '/w' };
    expect(await take(env, 'build')).toMatchObject({
      concurrency: 3,
      retryFor: 120_000,
      workDir: '/w',
    });
  });

  it('gives way to the command line, and an empty one counts as not set', async () => {
    expect(await take({ SEALIFT_WORK_DIR: '/w' }, 'build', '--work-dir', 'x')).toMatchObject({
      workDir: 'x',
    });
    expect(await take({ SEALIFT_WORK_DIR: '' }, 'build')).not.toHaveProperty('workDir');
  });

  it.each([
    ['true', true],
    ['True', true],
    ['false', undefined],
  ])('is a flag: %s is %s', async (text, value) => {
    expect((await take({ SEALIFT_REHASH: text }, 'build'))['rehash']).toBe(value);
  });

  it('is a negated flag under its own name', async () => {
    expect(await take({ SEALIFT_NO_SEED: 'true' }, 'build')).toMatchObject({ seed: false });
    expect(await take({ SEALIFT_NO_SEED: 'true' }, 'build', '--seed', 'a')).toMatchObject({
      seed: ['a'],
    });
  });

  it('may have no value where the option may have none', async () => {
    expect(await take({ SEALIFT_QUICK: 'true' }, 'verify', 'a.iso')).toMatchObject({ quick: true });
    expect((await take({ SEALIFT_QUICK: '1' }, 'verify', 'a.iso'))['quick']).not.toBe(true);
    expect(await take({ SEALIFT_RESET: 'bare' }, 'customize', 'a.iso')).toMatchObject({
      reset: 'bare',
    });
  });

  it('has one value a line if it may be repeated, and the command line replaces all', async () => {
    const env = { SEALIFT_SET: 'a=1, 2\n\nb=3\n' };
    expect(await take(env, 'build')).toMatchObject({ set: ['a=1, 2', 'b=3'] });
    expect(await take(env, 'build', '--set', 'c=4')).toMatchObject({ set: ['c=4'] });
    expect(await take({ SEALIFT_CONFIG: 'a\nb' }, 'reproduce', 'a.iso')).toMatchObject({
      config: ['a', 'b'],
    });
  });

  it('gives way to an option of the command line that excludes it', async () => {
    expect(await take({ SEALIFT_LOCKED: 'true' }, 'build', '--plan', 'p')).not.toHaveProperty(
      'locked',
    );
    expect(await take({ SEALIFT_LOCK: 'true' }, 'build', '--locked')).not.toHaveProperty('lock');
    expect(await take({ SEALIFT_QUIET: 'true' }, 'build', '--verbose')).not.toHaveProperty('quiet');
  });

  it.each([
    [{ SEALIFT_LOCKED: 'true', SEALIFT_PLAN: 'p' }, ['build']],
    [{ SEALIFT_SEED: 'a', SEALIFT_NO_SEED: 'true' }, ['build']],
    [{ SEALIFT_QUIET: 'true', SEALIFT_VERBOSE: 'true' }, ['build']],
  ])('is refused beside another that excludes it: %o', async (env, words) => {
    await expect(take(env, ...words)).rejects.toThrow(
      /SEALIFT_\w+ and SEALIFT_\w+ exclude each other/,
    );
  });

  it('belongs to the commands below serve, and not to products below build', async () => {
    const command = await parse('serve', '--data', 'd', '--key', 'file:k', 'doctor');
    const variables = createOptionVariables({ SEALIFT_LISTEN: ':1' });
    variables.take(command);
    expect(command.optsWithGlobals()).toMatchObject({ listen: { host: '::', port: 1 } });
    const product = await parse('build', 'installation-iso');
    const other = createOptionVariables({ SEALIFT_IGNITION: 'wrong' });
    other.take(product);
    expect(other.taken()).toEqual([]);
  });
});

const run = (env: NodeJS.ProcessEnv, ...args: readonly string[]) => runLine(args, { cwd, env });

describe('a run with variables', () => {
  test('names the variable in a refusal of its value', async () => {
    const { exitCode, stderr } = await run({ SEALIFT_RETRY_FOR: 'soon' }, 'build');
    expect(exitCode).toBe(2);
    expect(stderr).toContain(
      'error: SEALIFT_RETRY_FOR of the environment: --retry-for is "soon" [usage.retry-for]',
    );
  });

  test.each([
    [{ SEALIFT_REHASH: 'yes' }, 'SEALIFT_REHASH does not say if --rehash is set [usage.variable]'],
    [
      { SEALIFT_IGNITION: 'x' },
      'SEALIFT_IGNITION has no value for --ignition <how>: Allowed choices',
    ],
  ])('refuses %o', async (env, text) => {
    const { exitCode, stderr } = await run(env, 'build');
    expect(exitCode).toBe(2);
    expect(stderr).toContain(text);
  });

  test('names the variables in an error about a value that a command judges later', async () => {
    const env = { SEALIFT_SIGNATURE_URL: 'ftp://a' };
    const { stderr } = await run(env, 'catalog', 'list', 'absent', '--work-dir', 'w');
    expect(stderr).not.toContain('SEALIFT_');
    const refused = await run({ SEALIFT_TEMPLATE: 'absent' }, 'config-iso', 'validate', 'x.json');
    expect(refused.exitCode).toBe(3);
    expect(refused.stderr).toContain('note: options from the environment: SEALIFT_TEMPLATE');
  });

  test('reads a required option, and asks for it if the environment lacks it', async () => {
    const missing = await run({}, 'cache', 'prune', 'absent');
    expect(missing.stderr).toContain('usage.missing-mandatory-option-value');
    const { stderr } = await run({ SEALIFT_MAX_SIZE: '1GiB' }, 'cache', 'prune', 'absent');
    expect(stderr).not.toContain('missing-mandatory');
  });

  test('prints JSON, also of errors of the command line', async () => {
    const env = { SEALIFT_OUTPUT_FORMAT: 'json' };
    const { stdout } = await run(env, 'version');
    expect(JSON.parse(stdout)).toHaveProperty('version');
    const { stderr } = await run(env, 'version', '--unknown');
    expect(JSON.parse(stderr)).toMatchObject({ code: 'usage.unknown-option' });
    expect((await run(env, 'version', '-o', 'text')).stdout).toMatch(/^sealift /);
  });

  test('shows what it took, to the log as well, and only what relaxes a check with --quiet', async () => {
    const env = {
      SEALIFT_SET: 'ocpRelease.version=4.20.0',
      SEALIFT_STRICT: 'true',
      SEALIFT_QUIET: 'true',
      SEALIFT_LOG_FILE: 'run.log',
    };
    const { stderr } = await run(env, 'validate', 'absent.yaml');
    const sentence = 'warning: SEALIFT_SET sets --set: override a value of the files';
    expect(stderr).toContain(sentence);
    expect(stderr).not.toContain(
      'note: options from the environment: SEALIFT_SET, SEALIFT_STRICT\n',
    );
    const log = await readFile(join(cwd, 'run.log'), 'utf8');
    expect(log).toContain('SEALIFT_STRICT');
    const loud = await run({ SEALIFT_STRICT: 'true' }, 'validate', 'absent.yaml');
    expect(loud.stderr).toContain('note: options from the environment: SEALIFT_STRICT\n');
  });

  test('shows a flag that relaxes a check, with --quiet as well', async () => {
    const env = { SEALIFT_FORCE: 'true', SEALIFT_QUIET: 'true' };
    const { stderr } = await run(env, 'build', 'absent.yaml');
    expect(stderr).toContain('warning: SEALIFT_FORCE sets --force: ');
  });

  test('shows what relaxes a check as a JSON event, for JSON', async () => {
    const { stderr } = await run({ SEALIFT_SET: 'a=b' }, 'validate', 'absent.yaml', '-o', 'json');
    const [first = ''] = stderr.split('\n');
    expect(JSON.parse(first)).toMatchObject({ type: 'warning', message: /^SEALIFT_SET/ as never });
  });

  test('shows no value of a secret that a variable holds', async () => {
    const secret = '{"auths":{"r.example":{"auth":"aHVudGVyMg=="}}}';
    await writeFile(join(cwd, 'a.iso'), '');
    const { exitCode, stderr } = await run(
      { SEALIFT_PULL_SECRET: secret },
      'customize',
      'a.iso',
      '--output',
      'b.iso',
    );
    expect(exitCode).toBe(2);
    expect(stderr).toContain('--pull-secret is neither file:PATH nor env:NAME');
    expect(stderr).not.toContain('aHVudGVyMg');
  });
});

describe('a variable that no option has', () => {
  test('is warned of once, with the nearest name', async () => {
    const { stderr, exitCode } = await run({ SEALIFT_WORKDIR: 'x' }, 'version');
    expect(exitCode).toBe(0);
    expect(stderr).toBe(
      'warning: no option has the variable SEALIFT_WORKDIR; did you mean "SEALIFT_WORK_DIR"?\n',
    );
  });

  test('is a secret if the command line names it', async () => {
    const env = { SEALIFT_SERVE_SECRET: 'x' };
    const { stderr } = await run(
      env,
      'token',
      'issue',
      '--private-key',
      'env:SEALIFT_SERVE_SECRET',
      '--user',
      'u',
    );
    expect(stderr).not.toContain('is ignored');
  });
});
