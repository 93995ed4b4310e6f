import { readdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { ESLint, Linter } from 'eslint';
import { describe, expect, it } from 'vitest';

const STAGES = resolve('src/stages');

/** The last three are those of a stage over a list. */
const MEMBERS = ['name', 'run', 'reuse', 'items', 'bind', 'recover'];

describe('a stage', () => {
  it('is exported by a step and has the members of a stage', async () => {
    const files = (await readdir(STAGES, { recursive: true })).filter((file) =>
      file.endsWith('.ts'),
    );
    const stages: { readonly file: string; readonly name: string }[] = [];
    for (const file of files) {
      const values = Object.values((await import(resolve(STAGES, file))) as object) as unknown[];
      for (const value of values) {
        if (typeof value !== 'object' || value === null || !('run' in value)) continue;
        expect(
          Object.keys(value).filter((name) => !MEMBERS.includes(name)),
          file,
        ).toEqual([]);
        stages.push({ file, name: (value as unknown as { readonly name: string }).name });
      }
    }
    expect(stages.length).toBeGreaterThan(20);
    expect(stages.filter(({ file }) => !/^(?:[1-5]-|resolved\/)/.test(file))).toEqual([]);
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
    ['a stage in a product', 'src/stages/a.ts', 'export const x = { name: "x", run: () => 1 };'],
    [
      'a stage that a product binds to its request',
      'src/stages/a.ts',
      'export const x = (engine, request) => engine.run({ name: "x", run: () => request.a }, {});',
    ],
    [
      'a stage that a function makes',
      'src/stages/1-resolve/a.ts',
      'export const x = (request) => ({ name: "x", run: () => request.a });',
    ],
    [
      'a stage that has a state',
      'src/stages/1-resolve/a.ts',
      'let seen; export const x = { run: () => seen };',
    ],
    [
      'a stage that reads the environment',
      'src/stages/1-resolve/a.ts',
      'export const x = { name: "x", run: () => process.env.HOME };',
    ],
  ])('refuses %s', async (_what, path, code) => {
    expect(await lint(path, code)).toEqual(['no-restricted-syntax']);
  });

  it('accepts a stage at the top of its own file', async () => {
    const code = 'export const x = { name: "x", run: (inputs) => inputs.a };';
    expect(await lint('src/stages/1-resolve/a.ts', code)).toEqual([]);
  });
});
