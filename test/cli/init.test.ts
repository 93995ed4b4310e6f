import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Ajv } from 'ajv';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { registerInit } from '../../src/cli/init.ts';
import { registerValidate } from '../../src/cli/config.ts';
import { runCommand } from '../support/run-command.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-init-'));
});
afterEach(() => rm(directory, { recursive: true }));

/** @returns what `init` wrote, by its path in the directory */
async function init(template: string): Promise<ReadonlyMap<string, string>> {
  const { exitCode, stdout } = await runCommand(registerInit, ['init', '--template', template], {
    cwd: directory,
  });
  expect(exitCode).toBe(0);
  const names = /^wrote (.*)$/m.exec(stdout)?.[1]?.split(', ') ?? [];
  const read = async (name: string) =>
    [name, await readFile(join(directory, name), 'utf8')] as const;
  return new Map(await Promise.all(names.map(read)));
}

const MODELINE = /^# yaml-language-server: \$schema=(\S+)\n/;

describe.each(['minimal', 'ove', 'ibi', 'sites'])('sealift init --template %s', (template) => {
  test('writes no path of this machine into any file', async () => {
    const files = await init(template);
    expect(files.size).toBeGreaterThan(1);
    for (const text of files.values()) {
      expect(text).not.toContain('file:///');
      expect(text).not.toContain(process.cwd());
      expect(text).not.toContain(directory);
    }
  });

  test('writes the schema that each YAML file names, which accepts the file', async () => {
    const files = await init(template);
    const documents = [...files].filter(([name]) => name.endsWith('.yaml'));
    for (const [name, text] of documents) {
      const schema = files.get(join(dirname(name), MODELINE.exec(text)?.[1] ?? 'no modeline'));
      const parsed = JSON.parse(schema ?? '{}') as { readonly $id: string };
      expect(parsed.$id).toMatch(/^urn:sealift:[a-z-]+:v1(?:beta1)?$/);
      const validate = new Ajv({ allowUnionTypes: true }).compile(parsed);
      const filled = text.replaceAll(/\{\{ (\w+) \}\}/g, '1');
      expect(validate(parse(filled)), JSON.stringify(validate.errors)).toBe(true);
      expect(validate({ ...(parse(filled) as object), extra: 1 })).toBe(false);
    }
    expect(documents.length).toBeGreaterThan(0);
  });
});

test.each(['minimal', 'ove'])(
  'the operators example of the template %s is a valid configuration without its comment signs',
  async (template) => {
    const files = await init(template);
    const text = files.get('appliance-config.yaml') ?? '';
    expect(text).not.toMatch(/^operators:/m);
    const edited = text.replace(/^# operators:\n(?:# .*\n)+/m, (lines) =>
      lines.replaceAll(/^# /gm, ''),
    );
    expect(parse(edited)).toMatchObject({ operators: [{ packages: [{}, {}] }] });
    await writeFile(join(directory, 'appliance-config.yaml'), edited);
    const { exitCode, stderr } = await runCommand(registerValidate, ['validate'], {
      cwd: directory,
    });
    expect(stderr).toBe('');
    expect(exitCode).toBe(0);
  },
);

test('the configuration at the top of the repository is the one that init writes', async () => {
  const files = await init('minimal');
  for (const [name, text] of files) {
    expect(await readFile(join(import.meta.dirname, '../..', name), 'utf8')).toBe(text);
  }
});
