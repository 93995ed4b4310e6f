import { describe, expect, it } from 'vitest';
import { type IgnitionConfig, textFile } from '../../../src/ignition/index.ts';
import { canInstall, hasInstallation } from '../../../src/openshift/installation/ignition.ts';

const UNIT = {
  name: 'install-rhcos-and-restore-seed.service',
  enabled: true,
  contents: '[Unit]\n',
};

const configOf = (unit: object, content = '{}'): IgnitionConfig => ({
  ignition: { version: '3.2.0' },
  storage: { files: [textFile('/var/tmp/ibi-configuration.json', content, 0o600)] },
  systemd: { units: [{ ...UNIT, ...unit }] },
});

describe('a config that installs a seed image', () => {
  it('can install with its units active and its files filled', () => {
    expect(canInstall(configOf({}))).toBe(true);
  });

  it.each([
    ['masked', configOf({ mask: true })],
    ['disabled', configOf({ enabled: false })],
    ['empty', configOf({ contents: '' })],
    ['without its settings', configOf({}, '')],
  ])('cannot install %s, although it names all parts', (_what, config) => {
    expect([hasInstallation(config), canInstall(config)]).toEqual([true, false]);
  });
});
