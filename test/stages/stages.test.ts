import { readdir } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { ESLint, Linter } from 'eslint';
import { describe, expect, it } from 'vitest';

const STAGES = resolve('src/stages');

/** The last three are those of a stage over a list. */
const MEMBERS = ['name', 'run', 'reuse', 'items', 'bind', 'recover'];

describe('a file of src/stages', () => {
  it('has one stage, whose name begins with the same verb, and exports no other value', async () => {
    const files = (await readdir(STAGES, { recursive: true })).filter((file) =>
      file.endsWith('.ts'),
    );
    expect(files.length).toBeGreaterThan(20);
    for (const file of files) {
      const values = Object.values((await import(resolve(STAGES, file))) as object) as object[];
      expect(values, file).toHaveLength(1);
      const [stage = {}] = values;
      const members = Object.keys(stage).filter((name) => !MEMBERS.includes(name));
      expect(members, file).toEqual([]);
      const { name } = stage as { readonly name: string };
      expect(basename(file).split('-')[0], file).toBe(name.split(' ')[0]);
    }
  });
});

describe('the linter', () => {
  const eslint = new ESLint();

  async function lint(path: string, code: string): Promise<readonly string[]> {
    const { rules } = (await eslint.calculateConfigForFile(path)) as Linter.Config;
    const rule = rules?.['no-restricted-syntax'] ?? 'off';
    const config = { rules: { 'no-restricted-syntax': rule } };
    return new Linter().verify(code, [config]).map(({ ruleId }) => ruleId ?? 'parse error');
  }

  it.each([
    ['a stage in a recipe', 'src/recipes/a.ts', 'export const x = { name: "x", run: () => 1 };'],
    [
      'a stage that a recipe binds to its request',
      'src/recipes/live-iso/a.ts',
      'export const x = (engine, request) => engine.run({ name: "x", run: () => request.a }, {});',
    ],
    [
      'a stage that a function makes',
      'src/stages/a.ts',
      'export const x = (request) => ({ name: "x", run: () => request.a });',
    ],
    [
      'a stage that remembers',
      'src/stages/a.ts',
      'let seen; export const x = { run: () => seen };',
    ],
    [
      'a stage that reads the environment',
      'src/stages/a.ts',
      'export const x = { name: "x", run: () => process.env.HOME };',
    ],
  ])('refuses %s', async (_what, path, code) => {
    expect(await lint(path, code)).toEqual(['no-restricted-syntax']);
  });

  it('takes a stage at the top of a file of its own', async () => {
    const code = 'export const x = { name: "x", run: (inputs) => inputs.a };';
    expect(await lint('src/stages/a.ts', code)).toEqual([]);
  });
});
