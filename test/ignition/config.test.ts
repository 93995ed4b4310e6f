import { describe, expect, it } from 'vitest';
import {
  formatIgnition,
  IGNITION_VERSION,
  parseIgnition,
  textFile,
  type IgnitionConfig,
} from '../../src/ignition/index.ts';

const parse = (document: unknown): IgnitionConfig =>
  parseIgnition(JSON.stringify(document), 'unconfigured-agent.ign');

describe('parseIgnition', () => {
  it.each(['3.0.0', '3.1.0', '3.2.0', '3.3.0', '3.4.0', '3.5.0', '3.6.0'])(
    'reads version %s, and keeps members that nobody here knows',
    (version) => {
      const document = { ignition: { version }, storage: { later: [{ a: 1 }] } };
      expect(JSON.parse(formatIgnition(parse(document)))).toEqual(document);
    },
  );

  it('refuses a version newer than the one that its caller takes', () => {
    const text = '{"ignition":{"version":"3.3.0"}}';
    expect(() => parseIgnition(text, 'the override', IGNITION_VERSION)).toThrow(
      expect.objectContaining({
        code: 'ignition.version',
        expected: '3.0.0, 3.1.0, 3.2.0',
        hint: 'use a configuration of Ignition specification 3.0 to 3.2',
      }),
    );
  });

  it.each(['2.2.0', '3.7.0', '3.2', ''])('refuses version "%s" and names it', (version) => {
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
      'unconfigured-agent.ign is malformed: $.passwd.users.0.sshAuthorizedKeys is not an array; ' +
        '$.storage.files.0.mode is not an integer; $.storage.files.1.path is not a string; ' +
        '$.storage.files.2 is not an object; $.systemd.units.0.enabled is not a boolean',
    );
  });

  it('never quotes text that it cannot read', () => {
    const parseBroken = (): unknown => parseIgnition('{"passwordHash": "geheim" x', 'a.ign');
    expect(parseBroken).toThrow(/^a.ign is not JSON$/);
    expect(parseBroken).not.toThrow(
      expect.objectContaining({ cause: expect.anything() as unknown }),
    );
  });

  it('refuses a member that is written twice, which Ignition would merge', () => {
    const twice = '{"ignition":{"version":"3.2.0"},\n"passwd":{},\n"passwd":{"users":[]}}';
    expect(() => parseIgnition(twice, 'a.ign')).toThrow(
      'a.ign has "passwd" twice, the second time in line 3',
    );
  });

  it('takes null as absent and keeps members that it does not know', () => {
    const document = parse({ ignition: { version: '3.2.0' }, passwd: null, later: { a: 1 } });
    expect(document).toEqual({ ignition: { version: '3.2.0' }, later: { a: 1 } });
  });
});

describe('formatIgnition', () => {
  it('gives equal configurations equal bytes, regardless of the order of their members', () => {
    const one = parse({ systemd: {}, ignition: { version: '3.2.0' } });
    const other = parse({ ignition: { version: '3.2.0' }, systemd: {} });
    expect(formatIgnition(one)).toBe('{"ignition":{"version":"3.2.0"},"systemd":{}}');
    expect(formatIgnition(other)).toBe(formatIgnition(one));
  });
});

describe('textFile', () => {
  it('carries its content as a data URL, which is empty if there is no content', () => {
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
