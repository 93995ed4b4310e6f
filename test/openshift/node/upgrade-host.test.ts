import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { parse, parseAllDocuments } from 'yaml';
import { describe, expect, it } from 'vitest';
import { textFile, type File, type IgnitionConfig } from '../../../src/ignition/index.ts';
import { renderInstallIgnition } from '../../../src/openshift/node/install.ts';
import { renderUpgradeHostMachineConfigs } from '../../../src/openshift/node/upgrade.ts';
import { renderUpgradeMachineConfig } from '../../../src/openshift/node/upgrade.ts';
import { sampleKills } from '../../support/kills.ts';
import { bootstrapInput, listContents, readContents } from '../../support/node-configs.ts';
import { hasThrowAwayRoot, runInThrowAwayRoot } from '../../support/throw-away-root.ts';
import { requireTool } from '../../support/tools.ts';

const install = renderInstallIgnition(bootstrapInput);
const files = install.storage?.files ?? [];
const unitOf = (name: string): string =>
  install.systemd?.units?.find((unit) => unit.name === name)?.contents ?? '';

describe('an installed host', () => {
  const piecesOf = (overrides: Partial<typeof bootstrapInput>): string[] =>
    listContents(renderInstallIgnition({ ...bootstrapInput, ...overrides })).filter((line) =>
      line.includes('upgrade'),
    );

  it('can be upgraded from an ISO unless its flow is interactive or its registry goes away', () => {
    expect(piecesOf({})).toHaveLength(10);
    expect(piecesOf({ interactive: true })).toEqual([]);
    expect(piecesOf({ skipLocalRegistry: true })).toEqual([]);
    expect(piecesOf({ stopLocalRegistry: true })).toEqual([]);
  });

  it('knows the path of the registry data of an attached upgrade ISO', () => {
    const environment = files.find(({ path }) => path === '/etc/assisted/registry.env');
    expect(readContents(environment)).toContain(
      '\nREGISTRY_UPGRADE=/media/upgrade/oc-mirror/install\n',
    );
  });

  it('starts the registry of an upgrade ISO like its own, except name, data, certificate, port and entrypoint', () => {
    const runOf = (unit: string): string[] =>
      /ExecStart=\/usr\/bin\/podman(?:.*\\\n)+.*\n/.exec(unitOf(unit))?.[0].split('\n') ?? [];
    const own = runOf('start-local-registry.service');
    const upgrade = runOf('start-local-registry-upgrade@.service');
    expect(upgrade.filter((line) => !own.includes(line)).map((line) => line.trim())).toEqual([
      '--name=registry_upgrade --replace --rm --pull=never \\',
      '--volume=/media/upgrade/oc-mirror/install:/var/lib/registry:ro \\',
      '--volume=/etc/appliance-registry/certs-upgrade:/certs:ro \\',
      '--env=REGISTRY_HTTP_ADDR=:5001 \\',
      '--env=OTEL_TRACES_EXPORTER=none $REGISTRY_RUN_OPTIONS \\',
      'localhost/appliance-registry:latest $REGISTRY_COMMAND',
    ]);
    expect(upgrade).toHaveLength(own.length);
  });
});

type HostMachineConfig = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly spec: { readonly config: IgnitionConfig };
};
const machineConfigs = parseAllDocuments(renderUpgradeHostMachineConfigs()).map(
  (document) => document.toJS() as HostMachineConfig,
);
const broughtFiles = machineConfigs[0]?.spec.config.storage?.files ?? [];

describe('the MachineConfigs for hosts that were installed without support for upgrade ISOs', () => {
  it('are one for each role, under names that do not collide', () => {
    expect(
      machineConfigs.map(({ apiVersion, kind, metadata }) => [apiVersion, kind, metadata]),
    ).toEqual(
      ['master', 'worker'].map((role) => [
        ...['machineconfiguration.openshift.io/v1', 'MachineConfig'],
        {
          name: `99-${role}-upgrade-hosts`,
          labels: { 'machineconfiguration.openshift.io/role': role },
        },
      ]),
    );
  });

  it('bring the files of our own installation byte for byte, and the two scripts that it shares', () => {
    for (const { spec } of machineConfigs) {
      const brought = spec.config.storage?.files ?? [];
      for (const file of brought) expect(files).toContainEqual(file);
      for (const unit of spec.config.systemd?.units ?? []) {
        expect(install.systemd?.units).toContainEqual(unit);
      }
      expect(listContents(spec.config)).toEqual([
        '0555 /usr/local/bin/load-local-registry-image.sh',
        '0555 /usr/local/bin/certify-local-registry.sh',
        '0555 /usr/local/bin/mount-upgrade-iso.sh',
        '0555 /usr/local/bin/setup-local-registry-upgrade.sh',
        '0555 /usr/local/bin/copy-upgrade-registry.sh',
        '0555 /usr/local/bin/upgrade-cluster.sh',
        '0555 /usr/local/bin/start-cluster-upgrade.sh',
        '0600 /etc/udev/rules.d/99-upgrade-iso.rules',
        '- mount-upgrade-iso@.service',
        '- start-local-registry-upgrade@.service',
        '- copy-upgrade-registry@.service',
        '- start-cluster-upgrade@.service',
      ]);
    }
  });

  it.skipIf(!requireTool('ignition-validate'))('pass ignition-validate without a warning', () => {
    for (const { spec } of machineConfigs) {
      expect(spec.config.ignition.version).toBe('3.2.0');
      const { status, stdout, stderr } = spawnSync('ignition-validate', ['-'], {
        input: JSON.stringify(spec.config),
        encoding: 'utf8',
      });
      expect([status, stdout + stderr]).toEqual([0, '']);
    }
  });
});

type Device = Readonly<Record<string, string>>;

/** What udev's rules make of a device: units that it wants, and programs that run. */
function applyRules(rules: string, device: Device): string[] {
  return rules
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .flatMap((line) => {
      const tokens = [...line.matchAll(/([A-Z_]+(?:\{\w+\})?)(==|!=|\+=|=)"([^"]*)"/g)];
      const isMatch = tokens.every(([, key = '', operator, pattern = '']) => {
        if (operator !== '==' && operator !== '!=') return true;
        const globs = pattern.split('|').map((glob) => glob.replaceAll('*', '.*'));
        const value = device[key] ?? '';
        return globs.some((glob) => new RegExp(`^${glob}$`).test(value)) === (operator === '==');
      });
      const valueOf = (name: string): string =>
        tokens.find(([, key, operator]) => key === name && operator !== '==')?.[3] ?? '';
      const program = (device_: Device): string => {
        const escape = tokens.find(([, key]) => key === 'PROGRAM')?.[3] ?? 'false';
        const [command = '', ...words] = escape.split(' ');
        const args = words.map((word) => word.replace('$devnode', device_['DEVNAME'] ?? ''));
        return execFileSync(command, args, { encoding: 'utf8' }).trim();
      };
      if (!isMatch) return [];
      const actions = [valueOf('ENV{SYSTEMD_WANTS}'), valueOf('RUN')].filter((text) => text !== '');
      return actions.map((action) => action.replace('%c', program(device)));
    });
}

describe.skipIf(!requireTool('systemd-escape'))('the udev rules of an upgrade ISO', () => {
  const rules = readFileSync('templates/files/99-upgrade-iso.rules', 'utf8');
  const disc = { 'SUBSYSTEM': 'block', 'ACTION': 'change', 'ENV{ID_CDROM}': '1' };

  it.each([
    ['/dev/sr0', 'dev-sr0'],
    ['/dev/mapper/iso-1', String.raw`dev-mapper-iso\x2d1`],
  ])('start its registry by the escaped name of %s', (node, escaped) => {
    const device = { ...disc, 'ENV{ID_FS_LABEL}': 'upgrade_4.22.3', 'DEVNAME': node };
    expect(applyRules(rules, device)).toEqual([`start-local-registry-upgrade@${escaped}.service`]);
  });

  it('end it when the drive loses the disc, and ignore disks with other labels', () => {
    expect(applyRules(rules, { ...disc, DEVNAME: '/dev/sr0' })).toEqual([
      '/usr/bin/systemctl --no-block stop mount-upgrade-iso@dev-sr0.service',
    ]);
    const disk = { 'SUBSYSTEM': 'block', 'ACTION': 'add', 'ENV{ID_FS_LABEL}': 'rhcos-9.6' };
    expect(applyRules(rules, disk)).toEqual([]);
  });
});

/**
 * Says what it was asked. It has the images in /tmp/images, a name a line, or every image where there
 * does not exist; the files of an image are in /tmp/image.
 */
const PODMAN = textFile(
  '/usr/local/bin/podman',
  `#!/bin/sh
case "$1 $2" in
  "image exists") [ ! -e /tmp/images ] || grep -qxF "$3" /tmp/images ;;
  "image mount") echo /tmp/image ;;
  "image unmount") echo 0123abcd ;;
  "pull --quiet") echo "loaded from $3" >&2; echo 0123abcd ;;
  "tag "*) echo "tagged $2 as $3" >&2; echo "$3" >>/tmp/images ;;
esac
`,
  0o755,
);

const root = (script: string, more: readonly File[] = [], timeoutMs = 60_000) =>
  runInThrowAwayRoot(
    [...files, PODMAN, ...more],
    `sed -i 's/rsa:4096/rsa:2048/' /usr/local/bin/certify-local-registry.sh\n${script}`,
    { timeoutMs },
  );

const hasTools =
  hasThrowAwayRoot() &&
  ['mksquashfs', 'losetup', 'openssl', 'curl'].map(requireTool).every(Boolean);

describe.skipIf(!hasTools)('mount-upgrade-iso.sh', () => {
  const make = `
    mkdir -p /tmp/t/oc-mirror/install/docker/registry/v2/repositories; touch /tmp/t/release.env
    mksquashfs /tmp/t /tmp/one.iso -quiet -no-progress
    one="$(losetup --find --show --read-only /tmp/one.iso)"
    trap 'umount -q /media/upgrade; losetup --detach "$one"' EXIT
    mkdir -p /media
  `;

  it('mounts the ISO read-only, and refuses a second one', async () => {
    const { stdout, stderr, exitCode } = await root(`${make}
      mount-upgrade-iso.sh "$one" || exit 9
      grep -o '/media/upgrade squashfs ro' /proc/mounts
      mount-upgrade-iso.sh "$one"`);
    expect(stdout).toBe('/media/upgrade squashfs ro\n');
    expect(stderr).toContain('another one is at /media/upgrade: detach one of the two');
    expect(exitCode).toBe(1);
  });

  it('refuses an ISO without release.env, and leaves nothing mounted', async () => {
    const { stdout, stderr } = await root(`${make.replace('touch /tmp/t/release.env', '')}
      mount-upgrade-iso.sh "$one" && echo mounted; grep -c /media/upgrade /proc/mounts`);
    expect(stdout).toBe('0\n');
    expect(stderr).toContain('it has no release.env');
  });
});

describe.skipIf(!hasTools)('mount-upgrade-iso.sh with a foreign ISO', () => {
  it('refuses symbolic links, which could show files of the host, and leaves nothing mounted', async () => {
    const { stdout, stderr, exitCode } = await root(`
      tree=/tmp/t/oc-mirror/install/docker/registry/v2; mkdir -p $tree/repositories $tree/blobs /media
      touch /tmp/t/release.env; ln -s /certs/tls.key $tree/blobs/$'a\\e[2Jb'
      mksquashfs /tmp/t /tmp/one.iso -quiet -no-progress
      one="$(losetup --find --show --read-only /tmp/one.iso)"; trap 'losetup --detach "$one"' EXIT
      mount-upgrade-iso.sh "$one"; code=$?; grep -c /media/upgrade /proc/mounts; exit $code`);
    expect(stderr).toMatch(
      /it has symbolic links, as \$'.*blobs\/a\\E\[2Jb': it is not an upgrade ISO\n$/,
    );
    expect(stdout).toBe('0\n');
    expect(exitCode).toBe(1);
  });

  it('mounts it without its devices and programs', async () => {
    const { stdout } = await root(`
      mkdir -p /tmp/t/oc-mirror/install/docker/registry/v2/repositories /media; touch /tmp/t/release.env
      mksquashfs /tmp/t /tmp/one.iso -quiet -no-progress
      one="$(losetup --find --show --read-only /tmp/one.iso)"
      trap 'umount -q /media/upgrade; losetup --detach "$one"' EXIT
      mount-upgrade-iso.sh "$one"; grep -o '/media/upgrade squashfs ro,nosuid,nodev,noexec' /proc/mounts`);
    expect(stdout).toContain('/media/upgrade');
  });
});

describe.skipIf(!hasTools)('setup-local-registry-upgrade.sh', () => {
  it('keeps its certificate, which is trusted at port 5001 and differs from the one of the own registry', async () => {
    const { stdout, exitCode } = await root(`
      certify-local-registry.sh /etc/iri-registry/certs 22625 2>/dev/null
      certs=/etc/appliance-registry/certs-upgrade
      for run in 1 2; do setup-local-registry-upgrade.sh >/dev/null 2>&1 || exit 1; sha256sum $certs/*; done
      cmp $certs/tls.crt /etc/containers/certs.d/registry.appliance.openshift.com:5001/ca.crt &&
        cmp $certs/tls.crt /etc/pki/ca-trust/source/anchors/appliance-registry-5001.crt
      cmp --silent $certs/tls.crt /etc/iri-registry/certs/tls.crt || echo another`);
    expect(exitCode).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.slice(0, 2)).toEqual(lines.slice(2, 4));
    expect(lines.slice(4)).toEqual(['another']);
  });

  it("loads the registry's image again after the kubelet removed it", async () => {
    const { stderr } = await root('touch /tmp/images; setup-local-registry-upgrade.sh');
    expect(stderr).toContain('loaded from dir:/mnt/agentdata/images/registry\n');
  });

  it.each([
    [
      'usr/bin/distribution etc/registry/config.yaml',
      '--user=0 --entrypoint=/usr/bin/distribution',
      'serve /etc/registry/config.yaml',
    ],
    ['usr/bin/distribution', '', ''],
    ['registry config.yml', '', ''],
  ])('starts an image with %s with the options "%s"', async (paths, options, command) => {
    const { stdout, exitCode } = await root(`
      for path in ${paths}; do install -D /dev/null "/tmp/image/$path"; done
      setup-local-registry-upgrade.sh >/dev/null 2>&1 || exit 1
      cat /run/registry-upgrade.env`);
    expect(exitCode).toBe(0);
    expect(stdout).toBe(`REGISTRY_RUN_OPTIONS=${options}\nREGISTRY_COMMAND=${command}\n`);
  });
});

/** A host of openshift/appliance whose image podman knows by the name of its medium alone. */
const REFERENCE = 'quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:0123';
const REFERENCE_ENVIRONMENT = `
  printf '%s\\n' REGISTRY_IMAGE=${REFERENCE} REGISTRY_DATA=/mnt/agentdata/ >/tmp/registry.env
  echo ${REFERENCE} >/tmp/images
  set -a; . /tmp/registry.env; set +a
`;

describe.skipIf(!hasTools)('a host that got its files from a MachineConfig', () => {
  const onHost = (script: string) =>
    runInThrowAwayRoot(
      [...broughtFiles, PODMAN],
      `sed -i 's/rsa:4096/rsa:2048/' /usr/local/bin/certify-local-registry.sh\n${script}`,
    );

  it('serves the upgrade ISO with the image of the medium of another builder', async () => {
    const { stderr, stdout, exitCode } = await onHost(`${REFERENCE_ENVIRONMENT}
      install -D /dev/null /tmp/image/usr/bin/distribution
      install -D /dev/null /tmp/image/etc/registry/config.yaml
      setup-local-registry-upgrade.sh 2>/tmp/told || { cat /tmp/told >&2; exit 1; }
      grep tagged /tmp/told
      cat /run/registry-upgrade.env
      find /etc/containers/certs.d /etc/pki/ca-trust/source/anchors -name '*appliance*'`);
    expect(stderr).toBe('');
    expect(exitCode).toBe(0);
    expect(stdout).toContain(`tagged ${REFERENCE} as localhost/appliance-registry:latest\n`);
    expect(stdout).toContain('--entrypoint=/usr/bin/distribution\n');
    expect(stdout).toContain('/registry.appliance.openshift.com:5001\n');
    expect(stdout).toContain('/appliance-registry-5001.crt\n');
  });

  it('leaves the upgrade ISO attached if the host has no copy of its registry', async () => {
    const { stderr, exitCode } = await onHost('copy-upgrade-registry.sh');
    expect(exitCode).toBe(3);
    expect(stderr).toContain('leave the upgrade ISO attached');
  });
});

/**
 * Trees of registries by hand. `image TREE REPOSITORY TAG TEXT` adds an image whose config and layer
 * have this text, and prints its digest.
 */
const TREES = `
own=/var/lib/appliance-registry; iso=/media/upgrade/oc-mirror/install
v2=docker/registry/v2
add_blob() { # tree, file
  local hex; hex="$(sha256sum "$2" | cut -c1-64)"
  mkdir -p "$1/$v2/blobs/sha256/\${hex:0:2}/$hex"
  cp "$2" "$1/$v2/blobs/sha256/\${hex:0:2}/$hex/data"; echo "$hex"
}
add_link() { mkdir -p "$1"; printf 'sha256:%s' "$2" >"$1/link"; }
image() {
  local repository="$1/$v2/repositories/$2" config layer manifest
  echo "{\\"t\\":\\"$4\\"}" >/tmp/config; config="$(add_blob "$1" /tmp/config)"
  echo "layer $4" >/tmp/layer; layer="$(add_blob "$1" /tmp/layer)"
  printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%s","size":%d},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"sha256:%s","size":%d}]}' \\
    "$config" "$(stat -c %s /tmp/config)" "$layer" "$(stat -c %s /tmp/layer)" >/tmp/manifest
  manifest="$(add_blob "$1" /tmp/manifest)"
  add_link "$repository/_layers/sha256/$config" "$config"
  add_link "$repository/_layers/sha256/$layer" "$layer"
  add_link "$repository/_manifests/revisions/sha256/$manifest" "$manifest"
  add_link "$repository/_manifests/tags/$3/current" "$manifest"
  add_link "$repository/_manifests/tags/$3/index/sha256/$manifest" "$manifest"
  echo "$manifest"
}
old="$(image $own openshift/release-images 4.22.1-x86_64 old)"
image $own openshift/release both same >/dev/null
image $iso openshift/release both same >/dev/null
new="$(image $iso openshift/release-images 4.22.3-x86_64 new)"
image $iso redhat/index v4.22 catalog >/dev/null
list() { (cd "$1" && find . -type f -printf '%P %s %i %T@\\n' | sort); }
`;
const copies = describe.skipIf(!hasThrowAwayRoot());

copies('copy-upgrade-registry.sh', () => {
  it('adds the content of the ISO, changes no existing file, and leaves the release its only tag', async () => {
    const { stdout, exitCode } = await root(`${TREES}
      list $own >/tmp/before
      copy-upgrade-registry.sh || exit 1
      list $own >/tmp/after
      comm -23 /tmp/before /tmp/after
      cd $iso && find . -type f -path '*release-images*tags*' -prune -o -type f -print |
        while read -r file; do cmp "$file" "$own/$file"; done
      ls $own/$v2/repositories/openshift/release-images/_manifests/tags; ls -d /var/lib/appliance*
      find $own -type d ! -perm 755 -o -type f ! -perm 644
      copy-upgrade-registry.sh; list $own | cmp - /tmp/after`);
    expect(exitCode).toBe(0);
    const done =
      'upgrade registry: this host has every image of the upgrade ISO, which may be detached';
    expect(stdout.trimEnd().split('\n')).toEqual([
      'upgrade registry: copying 840.0B from the upgrade ISO: leave it attached',
      done,
      '4.22.1-x86_64',
      '/var/lib/appliance-registry',
      done,
    ]);
  });

  it('names each tag that stays on the image of the host, and has the image of the ISO by digest', async () => {
    const { stdout, exitCode } = await root(`${TREES}
      kept="$(image $own team/app 1.0 first)"
      added="$(image $iso team/app 1.0 second)"
      copy-upgrade-registry.sh | grep stays || exit 1
      manifests=$own/$v2/repositories/team/app/_manifests
      [[ "$(<$manifests/tags/1.0/current/link)" == "sha256:$kept" ]] && echo kept
      [[ "$(<$manifests/revisions/sha256/$added/link)" == "sha256:$added" ]] && echo added`);
    expect(exitCode).toBe(0);
    expect(stdout).toBe(
      'upgrade registry: team/app:1.0 stays the image of this host; the ISO has another one, by digest\nkept\nadded\n',
    );
  });

  it('continues after a kill at each of its steps, and never shows a link without its blob', async () => {
    const shim = (name: string): File =>
      textFile(
        `/opt/kill/${name}`,
        `#!/bin/bash
echo >>/tmp/steps
if (( $(wc -l </tmp/steps) == kill_at )); then kill -9 0; fi
exec /usr/bin/${name} "$@"
`,
        0o755,
      );
    const { first, stride } = sampleKills('an upgrade registry', 5);
    const { stdout, exitCode } = await root(
      `${TREES}
      cp -a $own /tmp/pristine
      check() {
        find $own -name link | while read -r link; do
          hex="$(sed 's/^sha256://' "$link")"
          [[ -s "$own/$v2/blobs/sha256/\${hex:0:2}/$hex/data" ]] || echo "step $kill_at: $link"
        done
      }
      export kill_at
      for ((kill_at = ${first}; kill_at < 200; kill_at += ${stride})); do
        rm -rf $own && cp -a /tmp/pristine $own
        : >/tmp/steps
        PATH=/opt/kill:$PATH setsid --wait copy-upgrade-registry.sh >/dev/null 2>&1 && break
        check
        copy-upgrade-registry.sh >/dev/null || echo "step $kill_at: not continued"
        (cd $own && find . -type f -exec sha256sum {} + | sort) >/tmp/result.$kill_at
        ls -d $own.* 2>/dev/null
      done
      (cd $own && find . -type f -exec sha256sum {} + | sort) >/tmp/expected
      for result in /tmp/result.*; do cmp $result /tmp/expected; done
      ((kill_at > 15 && kill_at < 200)) && echo enough`,
      ['cp', 'mv', 'sync', 'mkdir', 'chmod', 'rm'].map(shim),
      290_000,
    );
    expect(stdout).toBe('enough\n');
    expect(exitCode).toBe(0);
  }, 300_000);

  it('refuses a blob of the ISO with wrong bytes, and adds no link to it', async () => {
    const { stdout, stderr, exitCode } = await root(`${TREES}
      echo damaged >$iso/$v2/blobs/sha256/\${new:0:2}/$new/data
      copy-upgrade-registry.sh >/dev/null; code=$?
      find $own | grep "$new"; exit $code`);
    expect(exitCode).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toMatch(
      /blob sha256:[0-9a-f]{64} of the upgrade ISO is read as sha256:[0-9a-f]{64}/,
    );
  });

  it('ignores names on the ISO that a registry does not write, and links longer than a digest', async () => {
    const { stdout, stderr, exitCode } = await root(`${TREES}
      copy-upgrade-registry.sh >/dev/null; list $own >/tmp/wanted.names; cut -d' ' -f1 </tmp/wanted.names >/tmp/wanted
      rm -rf $own && mkdir -p $own/$v2 && image $own openshift/release-images 4.22.1-x86_64 old >/dev/null
      image $own openshift/release both same >/dev/null
      tree=$iso/$v2/repositories; hex="$(printf 'a%.0s' {1..64})"
      for repository in --target-directory=/tmp/evil -rf $'a\nb' 'a b' $'e\\e[2J' '$(touch /tmp/evil)'; do
        add_link "$tree/$repository/_layers/sha256/$hex" "$hex"
        add_link "$tree/x/_manifests/tags/$repository/current" "$hex"
      done
      mkdir -p $tree/y/_layers/sha256/$hex; truncate -s 1M $tree/y/_layers/sha256/$hex/link
      mkdir -p $iso/$v2/blobs/sha256/$'aa\n..'/$hex; echo x >$iso/$v2/blobs/sha256/$'aa\n..'/$hex/data
      mkdir -p /tmp/evil; copy-upgrade-registry.sh >/dev/null; code=$?
      list $own | cut -d' ' -f1 | diff /tmp/wanted - ; ls -A /tmp/evil; exit $code`);
    expect(stderr).toBe('');
    expect(stdout).toBe('');
    expect(exitCode).toBe(0);
  });

  it('names the needed and the free bytes if the disk is too small, and serves from the ISO', async () => {
    const df = textFile('/usr/local/bin/df', '#!/bin/sh\necho Avail; echo 1073741824\n', 0o755);
    const { stdout, stderr, exitCode } = await root(
      `${TREES} list $own >/tmp/before; copy-upgrade-registry.sh; code=$?
      list $own | cmp - /tmp/before; exit $code`,
      [df],
    );
    expect(exitCode).toBe(3);
    expect(stdout).toBe('');
    expect(stderr).toContain(
      'a copy needs 10.1GiB on the disk, but 1.0GiB are free: leave the upgrade ISO attached',
    );
  });

  it.each([
    ['rm -r $own', 3, 'this host has no copy of its registry at /var/lib/appliance-registry'],
    ['mv $own $own.partial', 1, 'waiting for the copy of the appliance ISO'],
  ])('copies nothing after %s', async (change, code, message) => {
    const { stderr, exitCode } = await root(`${TREES} ${change}; copy-upgrade-registry.sh`);
    expect(exitCode).toBe(code);
    expect(stderr).toContain(message);
  });
});

describe.skipIf(!hasTools || !requireTool('docker-registry') || !requireTool('unshare'))(
  'a host with an upgrade ISO',
  () => {
    const probe = (): string => {
      const text = renderUpgradeMachineConfig({
        arch: 'x86_64',
        resources: '',
        acknowledged: [],
        hops: [
          {
            version: '4.22.3',
            releaseImage: 'r@sha256:a',
            fromVersions: [],
            isSigned: true,
            isAccepted: false,
          },
        ],
      });
      const config = parse(text) as { spec: { config: { storage: { files: File[] } } } };
      const script = readContents(config.spec.config.storage.files[0]);
      return /readonly probe='([^']+)'/.exec(script)?.[1] ?? '';
    };

    it('shows the release to the check of the MachineConfig from the ISO, and from its copy once that is detached', async () => {
      const config = textFile(
        '/opt/registry.yaml',
        'version: 0.1\nstorage:\n  filesystem: {}\n  maintenance:\n    readonly: {enabled: true}\nhttp: {}\n',
        0o644,
      );
      const script = `${TREES}
        grep -q appliance /etc/hosts || echo 127.0.0.1 registry.appliance.openshift.com >>/etc/hosts
        setup-local-registry-upgrade.sh >/dev/null 2>&1
        certify-local-registry.sh /etc/iri-registry/certs 22625 >/dev/null 2>&1
        serve() { # port, certs, data
          REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY=$3 REGISTRY_HTTP_ADDR=:$1 \\
          REGISTRY_HTTP_TLS_CERTIFICATE=$2/tls.crt REGISTRY_HTTP_TLS_KEY=$2/tls.key \\
            docker-registry serve /opt/registry.yaml >/dev/null 2>&1 &
          until (: >/dev/tcp/127.0.0.1/$1) 2>/dev/null; do kill -0 $! || exit 1; done
        }
        look() { bash /opt/probe.sh "sha256:$1" && echo "$2: seen" || echo "$2: not seen"; }
        serve 22625 /etc/iri-registry/certs $own; own_pid=$!
        look $old old; look $new new
        serve 5001 /etc/appliance-registry/certs-upgrade $iso; iso_pid=$!
        look $new attached
        copy-upgrade-registry.sh >/dev/null || exit 1
        kill $iso_pid; wait $iso_pid 2>/dev/null
        look $new copied
        kill $own_pid`;
      const { stdout, stderr } = await root(`unshare --net bash --norc /opt/script.sh`, [
        config,
        textFile('/opt/probe.sh', probe(), 0o644),
        textFile('/opt/script.sh', `ip link set lo up\n${script}`, 0o644),
      ]);
      expect(stderr).toBe('');
      expect(stdout.trimEnd().split('\n')).toEqual([
        'old: seen',
        'new: not seen',
        'attached: seen',
        'copied: seen',
      ]);
    });
  },
);
