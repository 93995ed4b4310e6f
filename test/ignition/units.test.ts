import { describe, expect, it } from 'vitest';
import { textFile, type Unit } from '../../src/ignition/index.ts';
import { findUnitFaults } from '../../src/ignition/units.ts';

const RUN = '/usr/local/bin/run.sh';

function faultsOf(unit: Partial<Unit>, files = [textFile(RUN, '#!/bin/sh\n', 0o755)]): string[] {
  const config = {
    ignition: { version: '3.2.0' },
    storage: { files },
    systemd: { units: [{ name: 'run.service', ...unit }] },
  };
  return findUnitFaults(config).map(({ problem }) => problem);
}

describe('units of a config', () => {
  it('finds nothing wrong with a unit whose script is there', () => {
    expect(faultsOf({ contents: `[Service]\nExecStart=-${RUN} --now\n` })).toEqual([]);
  });

  it('names a script that no config writes', () => {
    expect(
      faultsOf({ contents: `[Service]\nExecStartPre=/usr/local/bin/gone.sh\nExecStart=${RUN}\n` }),
    ).toEqual(['no config writes /usr/local/bin/gone.sh']);
  });

  it('names a script of a drop-in', () => {
    const dropins = [
      { name: '10.conf', contents: '[Service]\nExecStartPre=-/usr/local/bin/gone.sh\n' },
    ];
    expect(faultsOf({ dropins })).toEqual(['no config writes /usr/local/bin/gone.sh']);
  });

  it('names a script that is not executable', () => {
    const contents = `[Service]\nExecStart=${RUN}\n`;
    expect(faultsOf({ contents }, [textFile(RUN, '', 0o644)])).toEqual([
      `${RUN} is not executable`,
    ]);
  });

  it('follows what a script calls, and not what it sources or what calls itself', () => {
    const text =
      '#!/bin/sh\n. /usr/local/bin/sourced.sh\n/usr/local/bin/run.sh\n/usr/local/bin/called.sh now\n';
    expect(
      faultsOf({ contents: `[Service]\nExecStart=${RUN}\n` }, [textFile(RUN, text, 0o755)]),
    ).toEqual(['no config writes /usr/local/bin/called.sh']);
  });

  it('names a service without a command, which systemd refuses', () => {
    expect(faultsOf({ contents: '[Service]\nType=simple\n' })).toEqual([
      'run.service has no command, so systemd refuses it',
    ]);
  });

  it('names a section without an end, and a command with a relative path', () => {
    expect(faultsOf({ contents: `[Service\nExecStart=${RUN}\n` })).toEqual([
      '"[Service" is not the name of a section, so systemd refuses the unit',
    ]);
    expect(faultsOf({ contents: '[Service]\nExecStart=./run\n' })).toEqual([
      './run is neither an absolute path nor a name',
    ]);
    expect(faultsOf({ contents: '[Service]\nExecStart=run x/y \\\n[more\n' })).toEqual([]);
  });

  it('leaves masked units and programs of the system alone', () => {
    expect(faultsOf({ mask: true, contents: '[Service]\n' })).toEqual([]);
    expect(faultsOf({ contents: '[Service]\nExecStart=/usr/bin/podman run x\n' })).toEqual([]);
    expect(faultsOf({ contents: '[Service]\nExecStart=/usr/local/bin/agent\n' })).toEqual([]);
  });

  it('reads each script once, however many ways and calls lead to it', () => {
    const at = (name: string, level: number): string => `/usr/local/bin/${name}${level}.sh`;
    const files = Array.from({ length: 5000 }, (_, level) => {
      const text = `${at('a', level + 1)}\n${at('b', level + 1)}\n`;
      return [textFile(at('a', level), text, 0o755), textFile(at('b', level), text, 0o755)];
    });
    const contents = `[Service]\n${`ExecStart=${at('a', 0)}\n`.repeat(5000)}`;
    expect(faultsOf({ contents }, files.flat())).toEqual([
      `no config writes ${at('a', 5000)}`,
      `no config writes ${at('b', 5000)}`,
    ]);
  });

  it('names a missing script for every unit that starts it, and a called one once', () => {
    const unit = { contents: `[Service]\nExecStart=/usr/local/bin/gone.sh\nExecStop=${RUN}\n` };
    const config = {
      ignition: { version: '3.2.0' },
      storage: { files: [textFile(RUN, '/usr/local/bin/called.sh\n', 0o755)] },
      systemd: { units: ['a.service', 'b.service'].map((name) => ({ name, ...unit })) },
    };
    expect(findUnitFaults(config)).toEqual([
      { unit: 'a.service', problem: 'no config writes /usr/local/bin/gone.sh' },
      { unit: 'a.service', problem: 'no config writes /usr/local/bin/called.sh' },
      { unit: 'b.service', problem: 'no config writes /usr/local/bin/gone.sh' },
    ]);
  });
});
