import { standInForInstaller } from './installer-stand-in.ts';

const PRISTINE = standInForInstaller('B', {
  metadata: { name: 'appliance' },
  spec: { pullSecretRef: { name: 'appliance-pull-secret' } },
  secretName: 'appliance-pull-secret',
  pullSecret: '{"auths":{}}',
});

/** A program that writes what an installer of era B writes without values of a site. */
export const INSTALLER = [
  '#!/bin/sh',
  'while [ $# -gt 0 ]; do [ "$1" = --dir ] && dir=$2; shift; done',
  'cat > "$dir/unconfigured-agent.ign" <<\'END\'',
  PRISTINE,
  'END',
  '',
].join('\n');
