import { readFileSync } from 'node:fs';

/**
 * The floors of the house, lowest first. Each row names its rooms, which may not import each other,
 * and the rooms below that they may import; `formats` stands for all formats, and a room in `doors`
 * is imported from outside only by its `index.ts`.
 */
/** @type {{ floors: { rooms: string[], imports: string[] }[], formats: string[], doors: string[] }} */
const { floors, formats, doors } = JSON.parse(
  readFileSync(new URL('floors.json', import.meta.url), 'utf8'),
);

/** @param {string[]} rooms */
const expand = (rooms) => rooms.flatMap((room) => (room === 'formats' ? formats : [room]));

const floorRules = floors.flatMap(({ rooms, imports }) =>
  rooms.map((room) => ({
    name: `floor-${room}`,
    comment: `${room} may import ${['itself', ...imports].join(', ')}.`,
    severity: 'error',
    from: { path: `^src/${room}/` },
    to: { path: '^src/', pathNot: `^src/(${[room, ...expand(imports)].join('|')})/` },
  })),
);

const doorRules = doors.map((room) => ({
  name: `door-${room}`,
  comment: `Other rooms import ${room} by its index.ts alone.`,
  severity: 'error',
  from: { path: '^src/', pathNot: `^src/${room}/` },
  to: { path: `^src/${room}/(?!index\\.ts$)` },
}));

/**
 * A package that one file imports: its door to the program.
 *
 * @param {string} name
 * @param {string} packages
 * @param {string} files
 */
const onlyIn = (name, packages, files) => ({
  name: `one-door-${name}`,
  comment: `${packages} is imported by ${files} alone.`,
  severity: 'error',
  from: { path: '^src/', pathNot: `^src/${files}$` },
  to: { path: `node_modules/${packages}` },
});

/** Files that import undici, and that are loaded by the first request. */
const CONNECTING = 'dispatchers|tunnels|forward';

export default {
  forbidden: [
    {
      name: 'no-circular',
      comment: 'A cycle means that two files are one; merge them or move what they share down.',
      severity: 'error',
      from: { path: '^src/' },
      to: { circular: true },
    },
    ...floorRules,
    ...doorRules,
    {
      name: 'steps-stand-alone',
      comment: 'Steps of the build never import each other: a product wires them.',
      severity: 'error',
      from: { path: '^src/stages/([1-5]-[^/]+)/([^/]+)$' },
      to: { path: '^src/stages/[1-5]-', pathNot: '^src/stages/$1/$2' },
    },
    {
      name: 'ships',
      comment: 'A package that the program imports is in its bundle: list it in dependencies.',
      severity: 'error',
      from: { path: '^src/' },
      to: { dependencyTypes: ['npm-dev'], pathNot: 'node_modules/@types/' },
    },
    onlyIn('processes', 'execa', 'base/process\\.ts'),
    onlyIn('http', 'undici', `base/http/(http|${CONNECTING})\\.ts`),
    {
      name: 'start-quickly',
      comment:
        'undici and execa take as long to load as a short command does: they are imported when they are needed.',
      severity: 'error',
      from: { path: '^src/', pathNot: `^src/base/http/(${CONNECTING})\\.ts$` },
      to: {
        path: `node_modules/(undici|execa)/|^src/base/http/(${CONNECTING})\\.ts$`,
        dynamic: false,
        dependencyTypesNot: ['type-only'],
      },
    },
    onlyIn('schema', 'ajv/', 'service/openapi\\.ts'),
    onlyIn('patterns', 're2js', 'base/text/go-pattern\\.ts'),
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
  },
};
