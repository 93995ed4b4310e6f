/** A floor imports only lower floors (DESIGN 3). Each rule says why in plain words. */
const floor = (name, allowed, comment) => ({
  name: `floor-${name}`,
  comment,
  severity: 'error',
  from: { path: `^src/${name}/` },
  to: { path: '^src/', pathNot: `^src/(${[name, ...allowed].join('|')})/` },
});
const formats = ['registry', 'iso', 'ignition', 'config', 'engine'];

export default {
  forbidden: [
    {
      name: 'no-circular',
      comment: 'A cycle means two files are one; merge them or move what they share down.',
      severity: 'error',
      from: { path: '^src/' },
      to: { circular: true },
    },
    floor('base', [], 'base knows nothing of us.'),
    ...formats.map((name) =>
      floor(name, ['base'], `${name} knows its own standard and base only.`),
    ),
    floor(
      'openshift',
      ['base', 'registry', 'ignition'],
      'openshift explains images and manifests.',
    ),
    floor(
      'media',
      ['base', ...formats, 'openshift'],
      'media are read and described without sites.',
    ),
    floor('sites', ['base', ...formats, 'openshift', 'media'], 'a site knows no build.'),
    floor(
      'stages',
      ['base', ...formats, 'openshift', 'media', 'sites'],
      'stages use formats; recipes wire stages.',
    ),
    floor(
      'recipes',
      ['base', ...formats, 'openshift', 'media', 'sites', 'stages'],
      'recipes know no command line.',
    ),
    floor(
      'service',
      ['base', ...formats, 'openshift', 'media', 'sites'],
      'the service makes what it serves of media and values; it runs no stages.',
    ),
    {
      name: 'stages-stand-alone',
      comment: 'Stages never import each other: a recipe wires them.',
      severity: 'error',
      from: { path: '^src/stages/(pour/|[^/]+/[^/]+)' },
      to: { path: '^src/stages/', pathNot: '^src/stages/$1' },
    },
    {
      name: 'one-door-processes',
      comment: 'execa is imported by src/base/process.ts alone.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/base/process\\.ts$' },
      to: { path: 'node_modules/execa' },
    },
    {
      name: 'one-door-http',
      comment:
        'undici is imported by src/base/http/http.ts, and by src/base/http/proxy.ts behind it.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/base/http/(http|proxy)\\.ts$' },
      to: { path: 'node_modules/undici' },
    },
    {
      name: 'one-door-patterns',
      comment: 're2js is imported by src/base/text/go-pattern.ts alone.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/base/text/go-pattern\\.ts$' },
      to: { path: 'node_modules/re2js' },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
  },
};
