import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../src/base/errors.ts';
import { checkIgnition, findIgnitionWarnings } from '../../src/ignition/check.ts';
import { formatIgnition, parseIgnition, textFile } from '../../src/ignition/config.ts';
import { requireTool } from '../support/tools.ts';

const parse = (rest: object) =>
  parseIgnition(JSON.stringify({ ignition: { version: '3.2.0' }, ...rest }), 'a.ign');

describe('checkIgnition', () => {
  const check = (rest: object): string[] =>
    [...checkIgnition(parse(rest), 'a.ign'), ...findIgnitionWarnings(parse(rest), 'a.ign')].map(
      ({ path = '', problem }) => `${path}: ${problem}`,
    );
  const files = (...entries: object[]): string[] => check({ storage: { files: entries } });

  it('finds nothing wrong with a good configuration', () => {
    const units = [
      { name: 'a@.service', enabled: true, contents: '[Install]\nWantedBy=x.target\n' },
    ];
    const storage = { files: [textFile('/etc/a', 'x', 0o600)], directories: [{ path: '/' }] };
    expect(check({ storage, systemd: { units } })).toEqual([]);
  });

  it('finds problems that are printed and listed like the problems of any other file', () => {
    const config = parse({ storage: { files: [{ path: 'a', mode: 1023 }] } });
    const found = [...checkIgnition(config, 'a.ign'), ...findIgnitionWarnings(config, 'a.ign')];
    expect(found.map(formatProblem)).toEqual([
      'a.ign: $.storage.files.0.path: path "a" is not absolute',
      'a.ign: $.storage.files.0.mode: warning: mode 1023 sets setuid, setgid or sticky: was it meant to be octal?',
    ]);
    expect(found.map(({ severity, code, file }) => [severity, code, file])).toEqual([
      ['error', 'ignition.invalid', 'a.ign'],
      ['warning', 'ignition.unusual', 'a.ign'],
    ]);
  });

  it.each([
    ['etc/a', 'path "etc/a" is not absolute'],
    ['/etc/../a', 'path "/etc/../a" is not simplified'],
    ['/etc//a', 'path "/etc//a" is not simplified'],
    ['/etc/a/', 'path "/etc/a/" is not simplified'],
    ['/etc/./a', 'path "/etc/./a" is not simplified'],
  ])('refuses the path %s', (path, problem) => {
    expect(files({ path })).toEqual([`$.storage.files.0.path: ${problem}`]);
  });

  it('refuses a path that appears twice, as a file, directory or link', () => {
    const storage = { files: [{ path: '/a' }], directories: [{ path: '/a' }] };
    expect(check({ storage })).toEqual([
      '$.storage.directories.0.path: path "/a" appears more than once',
    ]);
    const others = { directories: [{ path: '/b' }], links: [{ path: '/b', target: '/x' }] };
    expect(check({ storage: others })).toEqual([
      '$.storage.links.0.path: path "/b" appears more than once',
    ]);
  });

  it('looks at each name of a path once, even in paths of thousands of names', () => {
    const deep = '/a'.repeat(2000);
    const entries = Array.from({ length: 2000 }, (_, index) => ({ path: `${deep}${index}` }));
    const storage = { files: entries, links: [{ path: deep.slice(0, -2), target: '/x' }] };
    expect(check({ storage })).toHaveLength(2000);
    expect(check({ storage: { files: [{ path: '' }, { path: '/a' }] } })).toEqual([
      '$.storage.files.0.path: path is missing',
    ]);
  });

  it('refuses a file below a link of the same configuration', () => {
    const storage = { files: [{ path: '/a/b/c' }], links: [{ path: '/a/b', target: '/x' }] };
    expect(check({ storage })).toEqual([
      '$.storage.files.0.path: path "/a/b/c" passes through the link "/a/b"',
    ]);
  });

  it('refuses a path below another file', () => {
    expect(files({ path: '/a/b' }, { path: '/a/b/c' })).toEqual([
      '$.storage.files.1.path: path "/a/b/c" is below the file "/a/b"',
    ]);
  });

  it('refuses modes that were octal digits in decimal', () => {
    expect(files({ path: '/a', mode: 644 }, { path: '/b', mode: 4096 })).toEqual([
      '$.storage.files.1.mode: mode 4096 is not between 0 and 4095',
      '$.storage.files.0.mode: mode 644 sets setuid, setgid or sticky: was it meant to be octal?',
    ]);
  });

  it('refuses sources, compressions and hashes that Ignition does not know', () => {
    const contents = { source: 'ftp://x/', compression: 'xz', verification: { hash: 'md5-0' } };
    expect(files({ path: '/a', contents }, { path: '/b', overwrite: true })).toEqual([
      '$.storage.files.0.contents: source scheme "ftp" is not data, http, https, tftp, s3 or gs',
      '$.storage.files.0.contents: compression "xz" is not gzip',
      '$.storage.files.0.contents: hash "md5-0" is neither "sha256-" nor "sha512-" with hex digits',
      '$.storage.files.1.overwrite: is true without a source',
    ]);
    expect(files({ path: '/a', append: [{ source: 'data:;base64,%%' }] })).toEqual([
      '$.storage.files.0.append.0: data URL is not base64',
    ]);
  });

  it('refuses units that systemd would not load, and warns of enabled units that nothing wants', () => {
    const dropins = [{ name: 'a.txt' }];
    const units = [
      { name: 'a.text' },
      { name: 'b.service', enabled: true, contents: '[Unit]\n', dropins },
      { name: 'b.service' },
    ];
    expect(check({ systemd: { units } })).toEqual([
      '$.systemd.units.0: "a.text" is not a valid systemd unit name',
      '$.systemd.units.1: drop-in "a.txt" is not a .conf file',
      '$.systemd.units.2: "b.service" appears more than once',
      '$.systemd.units.1: unit "b.service" is enabled, but has no [Install] section',
    ]);
  });

  it('names members that Ignition would silently ignore', () => {
    expect(files({ path: '/a', modes: 420 })).toEqual([
      '$.storage.files.0.modes: "modes" is not a member of Ignition 3.2.0',
    ]);
  });

  it('names members and sources that are newer than the version of the config', () => {
    const document = (version: string): string[] => {
      const config = parseIgnition(
        JSON.stringify({
          ignition: { version },
          kernelArguments: { shouldExist: ['a=b'] },
          storage: {
            files: [{ path: '/a', contents: { source: 'arn:aws:s3:::b/k' } }],
            luks: [{ name: 'root', discard: true, cex: { enabled: true } }],
          },
        }),
        'a.ign',
      );
      return [...checkIgnition(config, 'a.ign'), ...findIgnitionWarnings(config, 'a.ign')].map(
        ({ path }) => path ?? '',
      );
    };
    expect(document('3.2.0')).toEqual([
      '$.storage.files.0.contents',
      '$.storage.luks.0.discard',
      '$.storage.luks.0.cex',
      '$.kernelArguments',
    ]);
    expect(document('3.4.0')).toEqual(['$.storage.luks.0.cex']);
    expect(document('3.6.0')).toEqual([]);
  });
});

const GZIP = `data:;base64,${gzipSync('a').toString('base64')}`;
const OF_NOTHING = createHash('sha256').digest('hex');

describe.skipIf(!requireTool('ignition-validate'))('checkIgnition and ignition-validate', () => {
  const file = (rest: object): object => ({ storage: { files: [{ path: '/a', ...rest }] } });
  const unit = (rest: object): object => ({ systemd: { units: [{ name: 'a.service', ...rest }] } });

  it.each([
    ['nothing', {}],
    ['a file without contents', file({})],
    ['an empty path', file({ path: '' })],
    ['a relative path', file({ path: 'a' })],
    ['a path with dots', file({ path: '/a/../b' })],
    ['a path with a slash at its end', file({ path: '/a/' })],
    ['a path with dots in its names', file({ path: '/a../..b/.c' })],
    ['two files of a path', { storage: { files: [{ path: '/a' }, { path: '/a' }] } }],
    [
      'a file and a link',
      { storage: { files: [{ path: '/a' }], links: [{ path: '/a', target: '/b' }] } },
    ],
    [
      'a file below a link',
      { storage: { files: [{ path: '/a/b' }], links: [{ path: '/a', target: '/b' }] } },
    ],
    [
      'a file beside a link',
      { storage: { files: [{ path: '/ab' }], links: [{ path: '/a', target: '/b' }] } },
    ],
    ['mode 4096', file({ mode: 4096 })],
    ['mode 644', file({ mode: 644 })],
    ['mode 420', file({ mode: 420 })],
    ['overwrite without a source', file({ overwrite: true })],
    ['overwrite with an empty source', file({ overwrite: true, contents: { source: '' } })],
    ['an ftp source', file({ contents: { source: 'ftp://a/' } })],
    ['an https source', file({ contents: { source: 'https://a/' } })],
    ['a source without a scheme', file({ contents: { source: 'a' } })],
    ['a data URL', file({ contents: { source: 'data:;base64,YQ==' } })],
    ['a data URL without a comma', file({ contents: { source: 'data:a' } })],
    ['xz', file({ contents: { source: 'data:,', compression: 'xz' } })],
    ['gzip', file({ contents: { source: GZIP, compression: 'gzip' } })],
    ['a short hash', file({ contents: { source: 'data:,', verification: { hash: 'sha256-0' } } })],
    ['an md5 hash', file({ contents: { source: 'data:,', verification: { hash: 'md5-0' } } })],
    [
      'a hash',
      file({ contents: { source: 'data:,', verification: { hash: `sha256-${OF_NOTHING}` } } }),
    ],
    ['an owner by id and name', file({ user: { id: 0, name: 'root' } })],
    ['a unit of an unknown kind', unit({ name: 'a.text' })],
    ['a unit without a kind', unit({ name: 'a' })],
    ['a template unit', unit({ name: 'a@.service' })],
    ['a drop-in of an unknown kind', unit({ dropins: [{ name: 'a.text' }] })],
    ['an enabled unit without contents', unit({ enabled: true })],
    ['an enabled unit that nothing wants', unit({ enabled: true, contents: '[Unit]\n' })],
    ['an enabled unit', unit({ enabled: true, contents: '[Install]\nWantedBy=a.target\n' })],
    ['two units of a name', { systemd: { units: [{ name: 'a.path' }, { name: 'a.path' }] } }],
    ['two users of a name', { passwd: { users: [{ name: 'a' }, { name: 'a' }] } }],
    ['an unknown member', { storages: {} }],
    ['an unknown member of a file', file({ modes: 1 })],
  ])('agree on %s', (_, rest) => {
    const config = parse(rest);
    const { status, stdout, stderr } = spawnSync('ignition-validate', ['-'], {
      input: formatIgnition(config),
      encoding: 'utf8',
    });
    const theirs = { error: status !== 0, warning: (stdout + stderr).includes('warning at') };
    const ours = {
      error: checkIgnition(config, 'case').length > 0,
      warning: findIgnitionWarnings(config, 'case').length > 0,
    };
    expect(ours).toEqual(theirs);
  });
});
