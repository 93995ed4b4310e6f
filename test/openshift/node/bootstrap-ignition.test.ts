import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { checkIgnition, findIgnitionWarnings } from '../../../src/ignition/check.ts';
import { formatIgnition, parseIgnition, type IgnitionConfig } from '../../../src/ignition/index.ts';
import { mergeConfigs } from '../../../src/ignition/merge.ts';
import {
  planClusterManifests,
  renderBootstrapIgnition,
} from '../../../src/openshift/node/bootstrap.ts';
import { CONFIG_AREA_PATH } from '../../../src/media/media-index.ts';
import { formatReleaseBundleTag } from '../../../src/openshift/release/bundle.ts';
import { renderInstallIgnition } from '../../../src/openshift/node/install.ts';
import {
  adaptUnconfigured,
  renderEmbeddedUnconfigured,
} from '../../../src/openshift/node/bootstrap.ts';
import { judgeUnits } from '../../support/judge-units.ts';
import {
  bootstrapInput,
  definitionsOf,
  findFile,
  listContents,
  readContents,
} from '../../support/node-configs.ts';
import { requireTool } from '../../support/tools.ts';

const interactiveInput = { ...bootstrapInput, interactive: true, skipLocalRegistry: true };
const configImage = renderBootstrapIgnition(bootstrapInput);
const interactive = renderBootstrapIgnition(interactiveInput);
const installs = [
  bootstrapInput,
  interactiveInput,
  { ...bootstrapInput, stopLocalRegistry: true },
  { ...bootstrapInput, crs: [] },
].map((input) => renderInstallIgnition(input));
const embedded = renderEmbeddedUnconfigured({
  release: bootstrapInput.release,
  interactive: true,
  registriesConf: readContents(findFile(interactive, '/etc/containers/registries.conf')),
});

const ALL: readonly (readonly [string, IgnitionConfig])[] = [
  ['bootstrap, config image', configImage],
  ['bootstrap, interactive', interactive],
  ['bootstrap under the embedded one', mergeConfigs(interactive, embedded)],
  ['embedded', embedded],
  ...installs.map((install, index) => [`install ${index}`, install] as const),
];

describe('the bootstrap configuration', () => {
  it('has these files and units in the flow with a configuration image', () => {
    expect(listContents(configImage)).toEqual([
      '0755 /etc/assisted/extra-manifests/',
      '0555 /usr/local/bin/mount-agent-data.sh',
      '0555 /usr/local/bin/setup-local-registry.sh',
      '0555 /usr/local/bin/load-local-registry-image.sh',
      '0555 /usr/local/bin/certify-local-registry.sh',
      '0644 /etc/assisted/registry.env',
      '0555 /usr/local/bin/set-env-files.sh',
      '0555 /usr/local/bin/update-hosts.sh',
      '0555 /usr/local/bin/reconfigure-local-registry-iri-tls.sh',
      '0600 /etc/assisted/install.ign',
      '0644 /etc/assisted/cluster-image-set.yaml',
      '0644 /etc/containers/registries.conf',
      '0555 /usr/local/bin/apply-hostnames.sh',
      '0644 /etc/assisted/appliance-override-password-set',
      '0644 /etc/assisted/extra-manifests/catalogs-0.yaml',
      '0644 /etc/assisted/extra-manifests/idms-release-0.yaml',
      '0644 /etc/assisted/extra-manifests/idms-operator-0.yaml',
      '0644 /etc/assisted/extra-manifests/itms-generic-0.yaml',
      '0644 /etc/assisted/extra-manifests/operatorhub-cluster.yaml',
      '0644 /etc/assisted/extra-manifests/99-master-set-core-pass.yaml',
      '0644 /etc/assisted/extra-manifests/99-worker-set-core-pass.yaml',
      '0644 /etc/assisted/extra-manifests/master-pinned-image-set.yaml',
      '0644 /etc/assisted/extra-manifests/worker-pinned-image-set.yaml',
      'enabled start-local-registry.service',
      'enabled pre-install-node-zero.service',
      'enabled update-hosts.service',
      'enabled watch-iri-tls-certs.path',
      '- reconfigure-local-registry-iri-tls.service',
      '- agent.service',
      'enabled show-config-image.service',
    ]);
  });

  it('shows the area of the medium for a configuration image, and not in the interactive flow', () => {
    const contentsOf = ({ systemd }: IgnitionConfig): string | undefined =>
      systemd?.units?.find(({ name }) => name === 'show-config-image.service')?.contents;
    const area = `/run/media/iso${CONFIG_AREA_PATH}`;
    expect(contentsOf(configImage)?.match(/^\w+=.*\/run\/media\/.*$/gm)).toEqual([
      `ConditionPathExists=${area}`,
      `ExecStart=/usr/sbin/losetup --find --show --read-only ${area}`,
    ]);
    expect(contentsOf(interactive)).toBeUndefined();
  });

  it('adds exactly the markers and the internal release image in the interactive flow', () => {
    const known = new Set(listContents(configImage));
    expect(listContents(interactive).filter((line) => !known.has(line))).toEqual([
      '0644 /etc/assisted/interactive-ui',
      '0644 /etc/assisted/no-config-image',
      '0644 /etc/assisted/extra-manifests/internalreleaseimage.yaml',
    ]);
  });

  it('gives the user core its password, if there is one', () => {
    const users = [{ name: 'core', passwordHash: '$6$saltsalt$hash' }];
    expect(configImage.passwd?.users).toEqual(users);
    const { corePasswordHash, ...rest } = bootstrapInput;
    const without = renderBootstrapIgnition(rest);
    expect(without.passwd?.users).toEqual([{ name: 'core' }]);
    expect(listContents(without).join()).not.toMatch(/core-pass|override-password/);
    expect(corePasswordHash).toBeDefined();
  });

  it('leaves out parts that are not configured', () => {
    const few = renderBootstrapIgnition({
      ...bootstrapInput,
      enableDefaultSources: true,
      createPinnedImageSets: false,
      extraManifests: [],
    });
    expect(listContents(few).join()).not.toMatch(/operatorhub|pinned|catalogs/);
  });

  it('carries the install configuration as a file that only root may read', () => {
    const text = readContents(findFile(configImage, '/etc/assisted/install.ign'));
    expect(parseIgnition(text, 'install.ign')).toEqual(renderInstallIgnition(bootstrapInput));
  });

  it('runs the payload image by its distribution, and another by its own entrypoint', () => {
    const contentsOf = (useDistributionEntrypoint: boolean): string | undefined =>
      renderBootstrapIgnition({
        ...bootstrapInput,
        registryImage: { reference: 'registry.example.com/registry:2', useDistributionEntrypoint },
      }).systemd?.units?.find(({ name }) => name === 'start-local-registry.service')?.contents;
    expect(contentsOf(true)).toContain(
      '--user=0 --entrypoint=/usr/bin/distribution \\\n' +
        '  localhost/appliance-registry:latest serve /etc/registry/config.yaml\n',
    );
    expect(contentsOf(false)).not.toContain('distribution');
    expect(contentsOf(false)).toMatch(/appliance-registry:latest\s*\nExecStop=/);
  });

  it('gives the same bytes for the same inputs', () => {
    expect(formatIgnition(renderBootstrapIgnition(structuredClone(bootstrapInput)))).toBe(
      formatIgnition(configImage),
    );
  });

  it('keeps our registries.conf when the installer brings its own', () => {
    const installer = adaptUnconfigured(
      { ...embedded, storage: { files: embedded.storage?.files ?? [] } },
      { interactive: true },
    );
    const merged = mergeConfigs(interactive, installer);
    expect(findFile(merged, '/etc/containers/registries.conf')).toEqual(
      findFile(interactive, '/etc/containers/registries.conf'),
    );
  });

  it('names the copies in the registry of the nodes for the cluster', () => {
    const read = (name: string): unknown =>
      parse(readContents(findFile(interactive, `/etc/assisted/extra-manifests/${name}`)));
    expect(read('idms-release-0.yaml')).toEqual({
      apiVersion: 'config.openshift.io/v1',
      kind: 'ImageDigestMirrorSet',
      metadata: { name: 'idms-release-0' },
      spec: {
        imageDigestMirrors: [
          {
            source: 'quay.io/openshift-release-dev/ocp-release',
            mirrors: ['localhost:22625/openshift/release-images'],
          },
          {
            source: 'quay.io/openshift-release-dev/ocp-v4.0-art-dev',
            mirrors: ['localhost:22625/openshift/release'],
          },
        ],
      },
    });
    expect(read('itms-generic-0.yaml')).toMatchObject({
      kind: 'ImageTagMirrorSet',
      spec: {
        imageTagMirrors: [
          { source: 'registry.redhat.io/rhel9', mirrors: ['localhost:22625/rhel9'] },
        ],
      },
    });
  });

  it('names the release in the internal release image exactly as its bundle is tagged', () => {
    const path = '/etc/assisted/extra-manifests/internalreleaseimage.yaml';
    const { version, arch } = interactiveInput.release;
    const tag = formatReleaseBundleTag(version, arch);
    expect(parse(readContents(findFile(interactive, path)))).toEqual({
      apiVersion: 'machineconfiguration.openshift.io/v1alpha1',
      kind: 'InternalReleaseImage',
      metadata: { name: 'cluster' },
      spec: { releases: [{ name: tag }] },
    });
  });

  it.each(['4.14.0', '4.20.9'])(
    'has no internal release image, and no other kind that a payload of %s does not define',
    (version) => {
      const definitions = definitionsOf(version);
      const release = { ...interactiveInput.release, version };
      const input = { ...interactiveInput, release, definitions };
      const { manifests } = planClusterManifests(input);
      const types = manifests.map(
        ({ text }) => parse(text) as { apiVersion: string; kind: string },
      );
      expect(types.map(({ kind }) => kind)).not.toContain('InternalReleaseImage');
      for (const { apiVersion, kind } of types) {
        const [group, name] = apiVersion.split('/');
        expect(
          definitions.some(
            (each) =>
              each.group === group && each.kind === kind && each.versions.includes(name ?? ''),
          ),
          `${apiVersion} ${kind}`,
        ).toBe(true);
      }
    },
  );

  it('has the internal release image as v1 for a payload that serves only v1', () => {
    const definitions = definitionsOf('4.22.9');
    const { manifests, warnings } = planClusterManifests({ ...interactiveInput, definitions });
    const found = manifests.find(({ name }) => name === 'internalreleaseimage.yaml');
    expect(parse(found?.text ?? '')).toMatchObject({
      apiVersion: 'machineconfiguration.openshift.io/v1',
    });
    expect(warnings).toEqual([]);
  });

  it('warns that the internal release image of 4.21 makes the cluster a technology preview', () => {
    const { warnings } = planClusterManifests(interactiveInput);
    expect(warnings).toEqual([expect.stringContaining('TechPreviewNoUpgrade')]);
    expect(planClusterManifests(bootstrapInput).warnings).toEqual([]);
  });

  it('refuses a manifest of the user with the name of a generated manifest', () => {
    const extraManifests = [
      { name: 'a.yaml', text: 'kind: A\n' },
      { name: 'a.yaml', text: 'kind: B\n' },
    ];
    expect(() => renderBootstrapIgnition({ ...bootstrapInput, extraManifests })).toThrow(
      expect.objectContaining({ code: 'manifest.duplicate' }),
    );
  });
});

describe('the install configuration', () => {
  const lists = installs.map(listContents);

  it('creates pinned image sets in the version that the release serves, if it serves them', () => {
    const piecesOf = (version: string): [string[], string | undefined] => {
      const install = renderInstallIgnition({
        ...bootstrapInput,
        definitions: definitionsOf(version),
      });
      const set = install.storage?.files?.find(({ path }) =>
        path.endsWith('master-pinned-image-set.yaml'),
      );
      const created = listContents(install).filter((line) => line.includes('create-pinned'));
      return [created, /^apiVersion: .*\/(.+)$/m.exec(readContents(set))?.[1]];
    };
    const CREATED = [
      '0555 /usr/local/bin/create-pinned-image-sets.sh',
      'enabled create-pinned-image-sets.service',
    ];
    expect(piecesOf('4.21.3')).toEqual([CREATED, 'v1']);
    expect(piecesOf('4.17.3')).toEqual([CREATED, 'v1alpha1']);
    expect(piecesOf('4.15.3')).toEqual([[], 'v1']);
  });

  it('runs the registry on installed hosts, copies its data and applies custom resources', () => {
    expect(lists[0]).toEqual([
      '0555 /usr/local/bin/set-installed-node-zero.sh',
      '0644 /etc/assisted/rendezvous-host.env',
      '0600 /etc/udev/rules.d/99-live-iso.rules',
      '0555 /usr/local/bin/mount-agent-data.sh',
      '0555 /usr/local/bin/setup-local-registry.sh',
      '0555 /usr/local/bin/load-local-registry-image.sh',
      '0555 /usr/local/bin/certify-local-registry.sh',
      '0644 /etc/assisted/registry.env',
      '0555 /usr/local/bin/copy-registry-data.sh',
      '0555 /usr/local/bin/mount-upgrade-iso.sh',
      '0555 /usr/local/bin/setup-local-registry-upgrade.sh',
      '0555 /usr/local/bin/copy-upgrade-registry.sh',
      '0555 /usr/local/bin/upgrade-cluster.sh',
      '0555 /usr/local/bin/start-cluster-upgrade.sh',
      '0600 /etc/udev/rules.d/99-upgrade-iso.rules',
      '0555 /usr/local/bin/create-pinned-image-sets.sh',
      '0644 /etc/assisted/pinned-image-sets/master-pinned-image-set.yaml',
      '0644 /etc/assisted/pinned-image-sets/worker-pinned-image-set.yaml',
      '0555 /usr/local/bin/apply-operator-crs.sh',
      '0600 /etc/assisted/extra-manifests/post-installation/index',
      '0600 /etc/assisted/extra-manifests/post-installation/nmstate-0.yaml',
      '0600 /etc/assisted/extra-manifests/post-installation/cnv-0.yaml',
      'enabled set-installed-node-zero.service',
      'enabled node-zero-installed.path',
      '- node-zero-installed.target',
      '- mount-live-iso@.service',
      'enabled start-local-registry.service',
      'enabled copy-registry-data.service',
      '- mount-upgrade-iso@.service',
      '- start-local-registry-upgrade@.service',
      '- copy-upgrade-registry@.service',
      '- start-cluster-upgrade@.service',
      'enabled create-pinned-image-sets.service',
      'enabled apply-operator-crs.service',
    ]);
  });

  it('has no registry with skipLocalRegistry, and stops it with stopLocalRegistry', () => {
    expect(lists[1]?.join()).not.toContain('local-registry');
    expect(lists[1]).toContain('0644 /etc/assisted/registry.env');
    expect(lists[2]).toContain('enabled stop-local-registry.service');
  });

  it('copies nothing from the medium with skipLocalRegistry, and with registryData "medium"', () => {
    const medium = renderInstallIgnition({ ...bootstrapInput, registryData: 'medium' });
    const script = findFile(medium, '/usr/local/bin/copy-registry-data.sh');
    expect(readContents(script)).toContain("readonly registry_data='medium'\n");
    expect(lists[1]?.join()).not.toContain('copy-registry-data');
  });

  it('gives the script the size and the digest of the registry', () => {
    const script = installs[0] && findFile(installs[0], '/usr/local/bin/copy-registry-data.sh');
    expect(readContents(script)).toContain("readonly tree_size='21000000000'\n");
    expect(readContents(script)).toContain(`readonly tree_digest='${'d'.repeat(64)}'\n`);
  });

  it('has no unit that waits for operators without custom resources', () => {
    expect(lists[3]?.join()).not.toContain('apply-operator-crs');
  });

  it('gives the script the namespace of each resource', () => {
    const path = '/etc/assisted/extra-manifests/post-installation/index';
    expect(readContents(installs[0] && findFile(installs[0], path))).toBe(
      '- nmstate-0.yaml\nopenshift-cnv cnv-0.yaml\n',
    );
  });

  it('has the placeholder in the form that the rendezvous host looks for', () => {
    const file = installs[0] && findFile(installs[0], '/etc/assisted/rendezvous-host.env');
    expect(file?.contents?.source).toMatch(
      /,cGxhY2Vob2xkZXItY29udGVudC1mb3ItcmVuZGV6dm91cy1ob3N0LmVudg==$/,
    );
  });
});

describe('every configuration', () => {
  it.each(ALL)('%s has no problem by itself', (_, config) => {
    expect([...checkIgnition(config, 'case'), ...findIgnitionWarnings(config, 'case')]).toEqual([]);
  });

  it.skipIf(!requireTool('ignition-validate')).each(ALL)(
    '%s passes ignition-validate without a warning',
    (_, config) => {
      const { status, stdout, stderr } = spawnSync('ignition-validate', ['-'], {
        input: formatIgnition(config),
        encoding: 'utf8',
      });
      expect(stdout + stderr).toBe('');
      expect(status).toBe(0);
    },
  );

  it.skipIf(!requireTool('shellcheck'))(
    'has scripts that pass shellcheck, as templates and rendered',
    () => {
      inDirectory((directory) => {
        const rendered = ALL.flatMap(([, config], index) =>
          (config.storage?.files ?? [])
            .filter(({ path }) => path.endsWith('.sh'))
            .map((file) => {
              const path = join(directory, `${index}-${basename(file.path)}`);
              writeFileSync(path, readContents(file));
              return path;
            }),
        );
        const templates = readdirSync('templates/scripts').map((name) =>
          join('templates/scripts', name),
        );
        expect(rendered.length).toBeGreaterThan(20);
        expect(execFileSync('shellcheck', [...templates, ...rendered]).toString()).toBe('');
      });
    },
  );

  it('has strict scripts only', () => {
    for (const name of readdirSync('templates/scripts')) {
      const text = readFileSync(join('templates/scripts', name), 'utf8');
      expect(text).toMatch(/^#!\/usr\/bin\/env bash\n/);
      expect(text).toMatch(/\nset -euo pipefail\n/);
    }
  });

  it.skipIf(!requireTool('systemd-analyze'))(
    'has units that systemd-analyze accepts without a message',
    () => {
      inDirectory((directory) => {
        const units = [configImage, ...installs].flatMap((config) => config.systemd?.units ?? []);
        const paths = units.map((unit) => {
          const bin = join(directory, 'bin/');
          mkdirSync(bin, { recursive: true });
          for (const [, script = ''] of (unit.contents ?? '').matchAll(
            /\/usr\/local\/bin\/(\S+)/g,
          )) {
            writeFileSync(join(bin, script), '#!/bin/sh\n');
            chmodSync(join(bin, script), 0o755);
          }
          const path = join(directory, unit.name);
          const text = unit.contents ?? '[Service]\nExecStart=/bin/true\n';
          writeFileSync(path, text.replaceAll('/usr/local/bin/', bin));
          for (const { name, contents = '' } of unit.dropins ?? []) {
            mkdirSync(`${path}.d`, { recursive: true });
            writeFileSync(join(`${path}.d`, name), contents.replaceAll('/usr/local/bin/', '/bin/'));
          }
          return path;
        });
        expect(judgeUnits([...new Set(paths)])).toEqual([]);
      });
    },
  );

  it.skipIf(!requireTool('systemd-analyze'))(
    'is checked by a tool that refuses broken units',
    () => {
      inDirectory((directory) => {
        const path = join(directory, 'wrong.service');
        writeFileSync(path, '[Unit]\nWrong=1\n[Service]\nExecStart=/nonexistent/program\n');
        expect(judgeUnits([path])).toEqual([
          expect.stringContaining("Unknown key 'Wrong'"),
          expect.stringContaining('/nonexistent/program is not executable'),
        ]);
      });
    },
  );
});

function inDirectory(use: (directory: string) => void): void {
  const directory = mkdtempSync(join(tmpdir(), 'sealift-units-'));
  try {
    use(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}
