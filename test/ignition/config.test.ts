import { describe, expect, it } from 'vitest';
import { checkIgnition } from '../../src/ignition/check.ts';
import {
  formatIgnition,
  parseIgnition,
  textFile,
  type IgnitionConfig,
} from '../../src/ignition/config.ts';

const parse = (document: unknown): IgnitionConfig =>
  parseIgnition(JSON.stringify(document), 'unconfigured-agent.ign');

describe('parseIgnition', () => {
  it.each(['3.0.0', '3.1.0', '3.2.0'])('reads version %s', (version) => {
    expect(parse({ ignition: { version } })).toEqual({ ignition: { version } });
  });

  it.each(['2.2.0', '3.3.0', '3.2', ''])('refuses version "%s" and names it', (version) => {
    expect(() => parse({ ignition: { version } })).toThrow(
      expect.objectContaining({
        code: 'ignition.version',
        message: `unconfigured-agent.ign has Ignition version "${version}"`,
      }),
    );
  });

  it.each([null, [], 'x', {}, { ignition: {} }, { ignition: { version: 3 } }])(
    'refuses %j, which has no version',
    (document) => {
      expect(() => parse(document)).toThrow('unconfigured-agent.ign has no ignition.version');
    },
  );

  it('names every member of the wrong type by its path', () => {
    const ignition = { version: '3.2.0' };
    const files = [{ path: '/a', mode: '0644' }, { path: 7 }, 'x'];
    const passwd = { users: [{ name: 'core', sshAuthorizedKeys: 'key' }] };
    const systemd = { units: [{ name: 'a.service', enabled: 'yes' }] };
    expect(() => parse({ ignition, passwd, storage: { files }, systemd })).toThrow(
      'unconfigured-agent.ign is malformed: $.passwd.users.0.sshAuthorizedKeys is no array; ' +
        '$.storage.files.0.mode is no integer; $.storage.files.1.path is no string; ' +
        '$.storage.files.2 is no object; $.systemd.units.0.enabled is no boolean',
    );
  });

  it('never quotes a text that it cannot read', () => {
    const parseBroken = (): unknown => parseIgnition('{"passwordHash": "geheim" x', 'a.ign');
    expect(parseBroken).toThrow(/^a.ign is not JSON$/);
    expect(parseBroken).not.toThrow(
      expect.objectContaining({ cause: expect.anything() as unknown }),
    );
  });

  it('takes null for absent and keeps members that it does not know', () => {
    const document = parse({ ignition: { version: '3.2.0' }, passwd: null, later: { a: 1 } });
    expect(document).toEqual({ ignition: { version: '3.2.0' }, later: { a: 1 } });
  });
});

describe('formatIgnition', () => {
  it('gives equal configurations equal bytes, whatever the order of their members', () => {
    const one = parse({ systemd: {}, ignition: { version: '3.2.0' } });
    const other = parse({ ignition: { version: '3.2.0' }, systemd: {} });
    expect(formatIgnition(one)).toBe('{"ignition":{"version":"3.2.0"},"systemd":{}}');
    expect(formatIgnition(other)).toBe(formatIgnition(one));
  });
});

describe('textFile', () => {
  it('carries its content as a data URL, and an explicitly empty one when there is none', () => {
    expect(textFile('/etc/a', 'é', 0o644)).toEqual({
      path: '/etc/a',
      overwrite: true,
      user: { name: 'root' },
      mode: 420,
      contents: { source: 'data:text/plain;charset=utf-8;base64,w6k=' },
    });
    expect(textFile('/etc/a', new Uint8Array(), 0o644).contents).toEqual({ source: 'data:,' });
  });
});

describe('checkIgnition', () => {
  const check = (rest: object): string[] =>
    checkIgnition(parse({ ignition: { version: '3.2.0' }, ...rest })).map(
      ({ path, problem }) => `${path}: ${problem}`,
    );
  const files = (...entries: object[]): string[] => check({ storage: { files: entries } });

  it('finds nothing wrong with a good configuration', () => {
    const units = [
      { name: 'a@.service', enabled: true, contents: '[Install]\nWantedBy=x.target\n' },
    ];
    const storage = { files: [textFile('/etc/a', 'x', 0o600)], directories: [{ path: '/' }] };
    expect(check({ storage, systemd: { units } })).toEqual([]);
  });

  it.each([
    ['etc/a', 'path "etc/a" is not absolute'],
    ['/etc/../a', 'path "/etc/../a" is not simplified'],
    ['/etc//a', 'path "/etc//a" is not simplified'],
    ['/etc/a/', 'path "/etc/a/" is not simplified'],
    ['/etc/./a', 'path "/etc/./a" is not simplified'],
  ])('refuses the path %s', (path, problem) => {
    expect(files({ path })).toEqual([`$.storage.files.0: ${problem}`]);
  });

  it('refuses a path that is there twice, be it a file, directory or link', () => {
    const storage = { files: [{ path: '/a' }], directories: [{ path: '/a' }] };
    expect(check({ storage })).toEqual([
      '$.storage.directories.0: path "/a" is there more than once',
    ]);
  });

  it('refuses a file below a link of the same configuration', () => {
    const storage = { files: [{ path: '/a/b/c' }], links: [{ path: '/a/b', target: '/x' }] };
    expect(check({ storage })).toEqual([
      '$.storage.files.0: path "/a/b/c" passes through the link "/a/b"',
    ]);
  });

  it('refuses modes that were octal digits in decimal', () => {
    expect(files({ path: '/a', mode: 644 }, { path: '/b', mode: 4096 })).toEqual([
      '$.storage.files.0: mode 644 sets setuid, setgid or sticky: was it meant to be octal?',
      '$.storage.files.1: mode 4096 is not between 0 and 4095',
    ]);
  });

  it('refuses sources, compressions and hashes that Ignition does not know', () => {
    const contents = { source: 'ftp://x/', compression: 'xz', verification: { hash: 'md5-0' } };
    expect(files({ path: '/a', contents }, { path: '/b', overwrite: true })).toEqual([
      '$.storage.files.0.contents: source scheme "ftp" is not data, http, https, tftp, s3 or gs',
      '$.storage.files.0.contents: compression "xz" is not gzip',
      '$.storage.files.0.contents: hash "md5-0" is neither sha256- nor sha512- and its hex digits',
      '$.storage.files.1.overwrite: is true, but there is no source',
    ]);
    expect(files({ path: '/a', append: [{ source: 'data:;base64,%%' }] })).toEqual([
      '$.storage.files.0.append.0: data URL is not base64',
    ]);
  });

  it('refuses units that systemd would not load, and enabled ones that nothing wants', () => {
    const dropins = [{ name: 'a.txt' }];
    const units = [
      { name: 'a.text' },
      { name: 'b.service', enabled: true, contents: '[Unit]\n', dropins },
      { name: 'b.service' },
    ];
    expect(check({ systemd: { units } })).toEqual([
      '$.systemd.units.0: "a.text" is no name of a systemd unit',
      '$.systemd.units.1: drop-in "a.txt" is no .conf file',
      '$.systemd.units.1: unit "b.service" is enabled, but has no [Install] section',
      '$.systemd.units.2: "b.service" is there more than once',
    ]);
  });

  it('names members that Ignition would silently ignore', () => {
    expect(files({ path: '/a', modes: 420 })).toEqual([
      '$.storage.files.0.modes: "modes" is no member of Ignition 3.2.0',
    ]);
  });
});
