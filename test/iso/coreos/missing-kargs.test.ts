import { describe, expect, it } from 'vitest';
import { findMissingKargs } from '../../../src/iso/coreos/missing-kargs.ts';

const DEFAULT =
  'mitigations=auto coreos.liveiso=rhcos-1 ignition.firstboot ignition.platform.id=metal';

describe('the kernel arguments that a live ISO needs', () => {
  it.each([
    ['the default arguments lack none', DEFAULT, []],
    ['other arguments may be removed', DEFAULT.replace('mitigations=auto ', ''), []],
    ['appended arguments do not matter', `${DEFAULT} ignition.firstbootx a=b`, []],
    [
      'a removed ignition.firstboot is missed',
      DEFAULT.replace('ignition.firstboot ', ''),
      ['ignition.firstboot'],
    ],
    [
      'a removed coreos.liveiso and platform are missed in their order',
      'mitigations=auto ignition.firstboot',
      ['coreos.liveiso=rhcos-1', 'ignition.platform.id=metal'],
    ],
    ['another platform is a platform', DEFAULT.replace('=metal', '=qemu'), []],
    ['an empty platform is missed', DEFAULT.replace('=metal', '='), ['ignition.platform.id=metal']],
    ['ignition.firstboot=1 is set', DEFAULT.replace('firstboot', 'firstboot=1'), []],
    [
      'ignition.firstboot=0 is missed',
      DEFAULT.replace('firstboot', 'firstboot=0'),
      ['ignition.firstboot'],
    ],
    [
      'a later ignition.firstboot=off wins',
      `${DEFAULT} ignition.firstboot=off`,
      ['ignition.firstboot'],
    ],
  ] as const)('%s', (_, text, missing) => {
    expect(findMissingKargs({ text, default: DEFAULT })).toEqual(missing);
  });

  it('are those of the default alone: a minimal ISO waits for no volume', () => {
    const minimal = 'ignition.firstboot ignition.platform.id=metal';
    expect(
      findMissingKargs({ text: `${minimal} coreos.live.rootfs_url=http://a/`, default: minimal }),
    ).toEqual([]);
    expect(findMissingKargs({ text: '', default: '' })).toEqual([]);
  });
});
