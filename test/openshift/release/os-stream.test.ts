import { describe, expect, it } from 'vitest';
import { openshiftOf, osStreamOf } from '../../../src/openshift/release/os-stream.ts';

describe('the volume name of a live ISO', () => {
  it.each([
    ['rhcos-10.1.20260301-0', 'rhel-10', undefined],
    ['rhcos-9.6.20250523-0', 'rhel-9', undefined],
    ['rhcos-418.94.202410090804-0', 'rhel-9', '4.18'],
    ['rhcos-49.84.202110081407-0', 'rhel-8', '4.9'],
    ['rhcos-410.84.202202251620-0', 'rhel-8', '4.10'],
    ['fedora-coreos-42.20250410.3.1', undefined, undefined],
    ['agent_configimage', undefined, undefined],
  ])('%s tells the stream %s and OpenShift %s', (volume, stream, version) => {
    expect([osStreamOf(volume), openshiftOf(volume)]).toEqual([stream, version]);
  });
});
