import { standInForImageSet, standInForInstaller } from './installer-stand-in.ts';

const NO_IMAGE = 'quay.io/ocp/release@sha256:1';

const PRISTINE = standInForInstaller('B', {
  metadata: { name: 'appliance' },
  spec: { pullSecretRef: { name: 'appliance-pull-secret' } },
  secretName: 'appliance-pull-secret',
  pullSecret: '{"auths":{}}',
});

/** Replaced when the program runs. */
export const IMAGE_SET = `data:text/plain;charset=utf-8;base64,${Buffer.from(standInForImageSet(NO_IMAGE)).toString('base64')}`;

const encode = (text: string): string => Buffer.from(text).toString('base64');

/**
 * A program that writes what an installer of era B writes without values of a site. It takes the
 * release out of its own marker, as the real one does.
 *
 * @param pristine what it writes, with `IMAGE_SET` as the source of the file that names the release
 */
export const makeInstaller = (version: string, pristine = PRISTINE): Buffer =>
  Buffer.from(
    [
      '#!/bin/sh',
      'while [ $# -gt 0 ]; do [ "$1" = --dir ] && dir=$2; shift; done',
      'image=$(tr "\\0" "\\n" < "$0" | grep -a -m1 "@sha256:[0-9a-f]*$")',
      `set=$(echo ${encode(standInForImageSet(NO_IMAGE, version))} | base64 -d | sed "s#${NO_IMAGE}#$image#" | base64 -w0)`,
      'sed "s#SET#$set#" > "$dir/unconfigured-agent.ign" <<\'END\'',
      pristine.replace(encode(standInForImageSet(NO_IMAGE)), 'SET'),
      'END',
      'exit 0',
      `\0_RELEASE_IMAGE_LOCATION_\0${'X'.repeat(200)}\0`,
      '',
    ].join('\n'),
    'latin1',
  );

export const INSTALLER = makeInstaller('4.21.3');
