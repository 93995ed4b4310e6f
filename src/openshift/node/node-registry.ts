import type { File, Unit } from '../../ignition/config.ts';
import { textFile } from '../../ignition/config.ts';
import { renderEnabledUnit, renderScript, renderText } from './templates.ts';

/** TCP port of the registry on every node, in the flow of 4.21 and later. */
export const NODE_REGISTRY_PORT = 22625;

/** TCP port where an attached upgrade ISO is served. */
export const UPGRADE_REGISTRY_PORT = 5001;

/**
 * The name by which nodes reach their own registry. With the interactive flow the machine config
 * operator takes the registry over and expects this one.
 */
export const nodeRegistryDomain = (interactive: boolean): string =>
  interactive ? 'localhost' : 'registry.appliance.openshift.com';

/** The registry server's image: what it is called where it comes from, and how it is started. */
export type RegistryImage = {
  /** The reference it was copied from, digest included. */
  readonly reference: string;
  /** The payload's docker-registry image does not start the server by itself. */
  readonly useDistributionEntrypoint: boolean;
};

export type NodeRegistry = {
  readonly image: RegistryImage;
  readonly interactive: boolean;
  /** The booted medium, or a host that runs from its disk. */
  readonly stage: 'live' | 'installed';
  /** Whether the cluster has a registry of its own, which serves the copy of the installer. */
  readonly internalReleaseImage?: boolean;
};

/** What runs the registry on a node: its scripts, its unit and its environment. */
export function renderNodeRegistry(registry: NodeRegistry): {
  readonly files: readonly File[];
  readonly units: readonly Unit[];
} {
  const { image, stage, interactive } = registry;
  const port = String(NODE_REGISTRY_PORT);
  const domain = nodeRegistryDomain(interactive);
  return {
    files: [
      renderScript('mount-agent-data.sh', {
        stage,
        'internal-release-image': registry.internalReleaseImage === true ? 'yes' : 'no',
      }),
      renderScript('setup-local-registry.sh', { domain, port }),
      ...renderRegistryScripts(domain),
      renderRegistryEnvironment(registry),
    ],
    units: [
      renderEnabledUnit('start-local-registry.service', {
        run: renderRegistryRun({
          name: 'registry',
          data: '${REGISTRY_DATA}',
          certs: '/etc/iri-registry/certs',
          port,
          ...startOf(image),
        }),
      }),
    ],
  };
}

/** What a host's own registry and that of an upgrade ISO both need before they start. */
export const renderRegistryScripts = (domain: string): readonly File[] => [
  renderScript('load-local-registry-image.sh'),
  renderScript('certify-local-registry.sh', { domain }),
];

/** How an image that the release brings is started; others start the server by themselves. */
const DISTRIBUTION = {
  options: '--user=0 --entrypoint=/usr/bin/distribution',
  command: 'serve /etc/registry/config.yaml',
};

const startOf = ({ useDistributionEntrypoint }: RegistryImage): typeof DISTRIBUTION =>
  useDistributionEntrypoint ? DISTRIBUTION : { options: '', command: '' };

/**
 * The lines of a unit that start and stop a registry; `data` and `certs` are paths of the host,
 * `options` is for podman and `command` for the image.
 */
export const renderRegistryRun = (
  run: Readonly<Record<'name' | 'data' | 'certs' | 'port' | 'options' | 'command', string>>,
): string => renderText('units/run-registry', run);

/** `/etc/assisted/registry.env`; installed hosts know where an upgrade ISO would be. */
export function renderRegistryEnvironment({ image, stage }: NodeRegistry): File {
  const lines = [
    `REGISTRY_IMAGE=${image.reference}`,
    'REGISTRY_DATA=/mnt/agentdata/',
    `REGISTRY_UPGRADE=${stage === 'live' ? '' : '/media/upgrade/oc-mirror/install'}`,
  ];
  return textFile('/etc/assisted/registry.env', `${lines.join('\n')}\n`, 0o644);
}
