import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { basename, dirname, extname, join, relative } from 'node:path';
import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import cruiser from '../../.dependency-cruiser.js';

/**
 * The house, held to its own statements: the table of floors, the rules made from it, the drawing in
 * ARCHITECTURE.md, and two lists of exceptions that may only shrink.
 */
const ROOT = join(import.meta.dirname, '../..');

type Floors = {
  readonly floors: readonly { readonly rooms: readonly string[]; readonly imports: string[] }[];
  readonly formats: readonly string[];
  readonly doors: readonly string[];
};
type Exceptions = {
  /** Names that two or more files export. */
  readonly exportedTwice: readonly string[];
  /** Files above 300 lines, with the number of the issue that shortens each. */
  readonly longFiles: Readonly<Record<string, number>>;
};

/** Tests of the whole program, and what tests share, have no counterpart in src. */
const OWN = /^(?:$|(?:boot|built|crash|docs|e2e|faults|fuzz|hostile|judges|load|support)(?:\/|$))/;

const { floors, formats, doors } = readJson('floors.json') as Floors;
const exceptions = readJson('test/docs/house.json') as Exceptions;
const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.(ts|mjs)$/.test(name))
  .sort();

describe('the table of floors', () => {
  it('has each room of src once', () => {
    const rooms = readdirSync(join(ROOT, 'src')).sort();
    expect(floors.flatMap((floor) => floor.rooms).sort()).toEqual(rooms);
    expect(rooms).toEqual(expect.arrayContaining([...formats, ...doors]));
  });

  it('lets a room import only from lower floors', () => {
    const lower: string[] = [];
    for (const { rooms, imports } of floors) {
      const named = imports.flatMap((room) => (room === 'formats' ? formats : [room]));
      expect(named.filter((room) => !lower.includes(room))).toEqual([]);
      lower.push(...rooms);
    }
  });

  it('is the same as the table in ARCHITECTURE.md', () => {
    const text = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8');
    const rows = floors.map(({ rooms, imports }) =>
      [rooms, imports].map((names) => names.join(', ')),
    );
    const written = [...text.matchAll(/^\| *\d+ *\| ([a-z, ]+?) *\| ([a-z, -]+?) *\|$/gm)].map(
      ([, rooms, imports]) => [rooms, imports === '-' ? '' : imports],
    );
    expect(written).toEqual(rows);
  });

  it('makes a rule for each room and for each door', () => {
    const names = cruiser.forbidden.map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining([
        ...floors.flatMap(({ rooms }) => rooms.map((room) => `floor-${room}`)),
        ...doors.map((room) => `door-${room}`),
        'no-circular',
      ]),
    );
  });

  it('is kept by all imports', () => {
    const { status, stdout } = spawnSync('npx', ['depcruise', 'src'], {
      cwd: ROOT,
      encoding: 'utf8',
    });
    expect(status, stdout).toBe(0);
  });
});

describe('a folder of tests', () => {
  it('is named after the folder or the file of src that it tests', () => {
    const folders = readdirSync(join(ROOT, 'test'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
      .map(({ parentPath }) => relative(join(ROOT, 'test'), parentPath));
    const strange = [...new Set(folders)].filter(
      (folder) => !OWN.test(folder) && !existsSync(join(ROOT, 'src', folder)),
    );
    expect(strange.filter((folder) => !files.includes(`${folder}.ts`))).toEqual([]);
  });
});

describe('ARCHITECTURE.md', () => {
  it('names each function with the file that exports it', () => {
    const text = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8');
    const steps = [...text.matchAll(/`(\w+)`\s\(`src\/([\w/-]+\.ts)`\)/g)];
    const missing = steps.filter(
      ([, name = '', file = '']) => !files.includes(file) || !listExports(file).includes(name),
    );
    expect(missing.map(([step]) => step)).toEqual([]);
    expect(steps.length).toBeGreaterThan(20);
  });
});

describe('a name', () => {
  it('is exported by one file, or is in the list of exceptions, which only shrinks', () => {
    const owners = new Map<string, number>();
    for (const name of files.flatMap((file) => [...new Set(listExports(file))])) {
      owners.set(name, (owners.get(name) ?? 0) + 1);
    }
    const twice = [...owners].filter(([, count]) => count > 1).map(([name]) => name);
    expect(twice.sort()).toEqual(exceptions.exportedTwice);
    expect(twice.length).toBeLessThanOrEqual(76);
  });

  it('belongs to one file of a folder', () => {
    const stems = files.map((file) => join(dirname(file), basename(file, extname(file))));
    expect(stems.filter((stem, index) => stems.indexOf(stem) !== index)).toEqual([]);
  });
});

it('a file has at most 300 lines, or is in the list with the issue that shortens it', () => {
  const long = files.filter((file) => read(file).split('\n').length - 1 > 300);
  expect(long).toEqual(Object.keys(exceptions.longFiles).sort());
});

/** Names that a file declares and exports; a door hands on the names of others. */
function listExports(file: string): string[] {
  const declared = /^export (?:async )?(?:function\*?|const|class|type) (\w+)/gm;
  return [...read(file).matchAll(declared)].map(([, name = '']) => name);
}

function read(file: string): string {
  return readFileSync(join(ROOT, 'src', file), 'utf8');
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8'));
}
