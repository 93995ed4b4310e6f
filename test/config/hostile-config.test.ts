import { expect, describe, test } from 'vitest';
import fc from 'fast-check';
import { checkConfig } from '../../src/config/load.ts';
import { formatProblem } from '../../src/base/errors.ts';
import { inputOf } from '../support/config-input.ts';

const show = (text: string): string => {
  const { problems, notes } = checkConfig(inputOf(text, '/absent/a.yaml'), { env: {} });
  return [...problems, ...notes].map(formatProblem).join('\n');
};

describe('a secret is not echoed by the problems of its file', () => {
  test.each([
    ['unquoted JSON', 'pullSecret: {"auths":{"q":{"auth":"hunter2"}}}'],
    ['a misspelt key', `pullSercet: '{"x": "hunter2"}'`],
    ['a misspelt password', 'userCorePas: hunter2'],
    ['broken JSON', `pullSecret: '{"auths": hunter2'`],
    ['a missing quote', `pullSecret: '{"auths": {"hunter2"\nkind: x`],
    ['lines that are not indented', 'pullSecret: {\n"auths":\n{"q": "hunter2"\n'],
    ['a block', 'pullSecret: |\n  hunter2\n  hunter2: x\nkind: [\n'],
    ['a second time', `pullSecret: '{}'\npullSecret: hunter2`],
    ['a private key', 'sshKey: |\n  -----BEGIN OPENSSH PRIVATE KEY-----\n  hunter2\n'],
    ['JSON in one line', '{"kind":"x","userCorePass":"hunter2"}'],
    ['broken YAML after a misspelt key', 'usrCorePas: hunter2: x'],
    ['a value on the next line', 'pullSecret:\n  hunter2: [\n'],
    ['a list', 'userCorePass: [hunter2]'],
    ['a user in a URL', 'build: {baseIso: "https://u:hunter2@example.com/a"}'],
  ])('%s', (_, text) => {
    const shown = show(text);
    expect(shown).not.toBe('');
    // URLs are masked when problems are printed, where every URL is.
    if (!text.includes('https:')) expect(shown).not.toContain('hunter2');
  });

  test('wherever the file is cut off', () => {
    const whole = `apiVersion: x\npullSecret: >-\n  {"auths": {"q":\n  {"auth": "hunter2"}}}\nbuild: {`;
    for (let end = 0; end <= whole.length; end++) {
      expect(show(whole.slice(0, end))).not.toContain('hunter');
    }
  });
});

describe('a hostile file is refused in bounded time', () => {
  test('aliases that unfold without end', () => {
    const item = 'a: &a {name: x, channels: [{name: c}]}';
    const many = (name: string): string => `[${Array.from({ length: 100 }, () => name).join(',')}]`;
    const text = `metadata: {${item}, b: &b ${many('*a')}, c: &c {catalog: q.io/c:1, packages: *b}}\noperators: ${many('*c')}\n`;
    expect(show(text)).toContain('expands to more than 20000 values');
  });

  test('an alias to a node that contains it', () => {
    expect(show('operators: &a [{catalog: x, packages: *a}]')).not.toBe('');
  });

  test('texts and keys that no file system, program or encoding takes', () => {
    const lines = [
      'mirrorPath: "/tmp/\\0"',
      'userCorePass: "hunter2\\0"',
      'additionalImages: [{name: "q.io/a:1\\uD800"}]',
      '"pull\\0Secret": x',
    ];
    const problems = checkConfig(inputOf(lines.join('\n'), '/absent/a.yaml'), { env: {} }).problems;
    expect(problems.map(({ line, problem }) => `${line} ${problem}`)).toEqual(
      expect.arrayContaining([
        '1 has a NUL character',
        '2 has a NUL character',
        '3 has half a surrogate pair',
        '4 a key has a NUL character',
      ]),
    );
    expect(JSON.stringify(problems)).not.toContain('hunter2');
  });

  test.each(['', '---', '[]', 'x', '- a', '\0', '? [a]: b', '__proto__: {a: 1}', 'constructor: 1'])(
    'the text %j',
    (text) => {
      expect(show(text)).not.toBe('');
    },
  );

  test('any text at all', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...Array.from(':-[]{}&*!|>\'"#\n a%@0')) }),
        (text) => {
          expect(typeof show(text)).toBe('string');
        },
      ),
    );
  });
});
