import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { listProjects } from '../projects.ts';
import { sampleKills } from '../support/kills.ts';
import { formatSlowest } from '../support/slowest-files.ts';

it('each test file is in exactly one project', () => {
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts') && !name.startsWith('boot/'))
    .map((name) => `test/${name}`);
  const { unit, programs, whole } = listProjects();
  expect([...unit, ...programs, ...whole].sort()).toEqual(files.sort());
});

it('a test is in the project of the most that it imports, itself or through others', () => {
  const { unit, programs, whole } = listProjects();
  expect(unit).toContain('test/docs/projects.test.ts');
  expect(programs).toContain('test/iso/lay-out/lay-out-foreign.test.ts');
  expect(whole).toContain('test/e2e/killed.test.ts');
});

it('a unit test cannot start a process', () => {
  const { spawn, execFileSync } = process.getBuiltinModule('node:child_process');
  for (const start of [() => spawn('true'), () => execFileSync('true')]) {
    expect(start).toThrow('a unit test starts no process');
  }
});

it('samples of all seeds together try each step, and a seed tries one in so many', () => {
  const firsts = new Set<number>();
  const { KILL_SEED: seed } = process.env;
  try {
    for (let drawn = 0; drawn < 100; drawn++) {
      process.env['KILL_SEED'] = String(drawn);
      const { first, stride } = sampleKills('a title', 4);
      expect([stride, sampleKills('a title', 4).first]).toEqual([4, first]);
      firsts.add(first);
    }
    process.env['KILL_SEED'] = 'all';
    expect(sampleKills('a title', 4)).toEqual({ first: 1, stride: 1 });
  } finally {
    process.env['KILL_SEED'] = seed;
  }
  expect([...firsts].sort()).toEqual([1, 2, 3, 4]);
});

it('the slowest files are listed by processor time, those above the limit with a note', () => {
  const costs = Array.from({ length: 12 }, (_, index) => ({
    file: `${index}.ts`,
    seconds: index * 6,
  }));
  const [head, first, ...rest] = formatSlowest(costs).trimEnd().split('\n');
  expect(head).toBe('processor time of all test files: 396 s; most:');
  expect(first).toBe('    66.0 s  11.ts  more than 60 s: split it, or try fewer cases');
  expect([rest.length, rest[0], rest.at(-1)]).toEqual([9, '    60.0 s  10.ts', '    12.0 s  2.ts']);
});
