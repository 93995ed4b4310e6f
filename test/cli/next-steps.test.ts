import { describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { describeNextSteps, type BuiltMedium } from '../../src/cli/build-live-iso.ts';
import { formatReport } from '../../src/cli/terminal/report.ts';
import { createProgram } from '../../src/cli/program.ts';
import { PassThrough } from 'node:stream';

const medium = { output: 'out/ove.iso', fips: false, ignition: 'installer' } as const;

const formatNextSteps = (built: BuiltMedium): readonly string[] =>
  formatReport({ title: [], body: describeNextSteps(built) })
    .trimEnd()
    .split('\n');

describe('the steps after a build', () => {
  it('go through the installer and the check of its image for a medium that is not interactive', () => {
    expect(formatNextSteps({ ...medium, interactive: false })).toEqual([
      'next:',
      '  1. sealift verify out/ove.iso',
      '  2. sealift extract installer out/ove.iso --out out',
      '  3. write install-config.yaml and agent-config.yaml to site/, and keep copies: the next step deletes them',
      '  4. out/openshift-install agent create config-image --dir site',
      '  5. sealift config-iso check site/agentconfig.noarch.iso --medium out/ove.iso',
      '  6. attach out/ove.iso and site/agentconfig.noarch.iso to every host, and boot; boot order: installation disk first',
      '  7. out/openshift-install agent wait-for install-complete --dir site',
      '  sealift help install: the boot order, when the medium may be detached, and how to add hosts',
    ]);
  });

  it('name the installer for FIPS on a medium that boots with FIPS', () => {
    const steps = formatNextSteps({ ...medium, output: 'ove.iso', interactive: false, fips: true });
    expect(steps).toContain('  4. ./openshift-install-fips agent create config-image --dir site');
  });

  it('are commands that a shell takes as they are for any name of the medium', () => {
    const output = "site's files/my $(touch x).iso";
    const steps = formatNextSteps({ ...medium, output, interactive: false }).join('\n');
    expect(steps).toContain(String.raw`verify 'site'\''s files/my $(touch x).iso'` + '\n');
    expect(steps).toContain(String.raw`--out 'site'\''s files'` + '\n');
    expect(steps).toContain(String.raw` 'site'\''s files/openshift-install' agent create`);
    const option = formatNextSteps({ ...medium, output: '-x.iso', interactive: true });
    expect(option).toContain('  1. sealift verify ./-x.iso');
  });

  it.each(['s3://media/nightly/ove.iso', '/dev/sdb'])(
    'put the installer into the working directory if the medium is not in a folder: %s',
    (output) => {
      const steps = formatNextSteps({ ...medium, output, interactive: false });
      expect(steps).toContain(`  2. sealift extract installer ${output} --out .`);
      expect(steps).toContain('  4. ./openshift-install agent create config-image --dir site');
    },
  );

  it('go to the web interface, without a configuration image, for an interactive medium', () => {
    const steps = formatNextSteps({ ...medium, interactive: true }).join('\n');
    expect(steps).toContain('http://<rendezvous IP>:3001');
    expect(steps).not.toMatch(/config-image|config-iso|extract/);
  });

  it('name the keys that the release was verified with, as its installer is verified again', () => {
    const steps = formatNextSteps({ ...medium, interactive: false, keys: 'my keys.gpg' });
    const command = "extract installer out/ove.iso --out out --signature-keys 'my keys.gpg'";
    expect(steps).toContain(`  2. sealift ${command}`);
  });

  it('promise no cluster for a medium without an assisted installer', () => {
    const steps = formatNextSteps({ ...medium, interactive: true, ignition: 'embedded' });
    expect(steps).toEqual(['next: sealift verify out/ove.iso']);
  });

  it('name commands that the program has', () => {
    const stream = new PassThrough();
    const program = createProgram({
      stdout: stream,
      stderr: stream,
      env: {},
      cwd: '/',
      redaction: createRedaction(),
      isTTY: false,
      now: () => 0,
      signal: new AbortController().signal,
    });
    const steps = formatNextSteps({ ...medium, interactive: false });
    const commands = steps.flatMap(
      (step) => /\. sealift ([a-z -]+?) [^ ]*[./]/.exec(step)?.[1] ?? [],
    );
    expect(commands).toEqual(['verify', 'extract installer', 'config-iso check']);
    for (const words of commands) {
      let command: ReturnType<typeof createProgram> | undefined = program;
      for (const word of words.split(' ')) {
        command = command?.commands.find((child) => child.name() === word);
      }
      expect(command?.name(), words).toBe(words.split(' ').at(-1));
    }
  });
});
