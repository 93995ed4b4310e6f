import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { PACKAGE_ROOT } from '../../base/program.ts';
import { type File, textFile, type Unit } from '../../ignition/index.ts';

type Holes = Readonly<Record<string, string>>;

const ROOT = new URL('templates/', PACKAGE_ROOT);

/** A template's text with its holes filled. `name` is a path below `templates/`. */
export function renderText(name: string, holes: Holes = {}): string {
  return renderTemplate(readFileSync(fileURLToPath(new URL(name, ROOT)), 'utf8'), holes);
}

/** An executable of `/usr/local/bin`; its values are inside single quotes of the shell. */
export function renderScript(name: string, holes: Holes = {}): File {
  for (const [hole, value] of Object.entries(holes)) {
    if (/['\n\0]/.test(value)) throw new Error(`value of the hole "${hole}" would end its quotes`);
  }
  return textFile(`/usr/local/bin/${name}`, renderText(`scripts/${name}`, holes), 0o555);
}

/** A unit that systemd's preset enables at the first boot. */
export function renderEnabledUnit(name: string, holes: Holes = {}): Unit {
  return { ...renderUnit(name, holes), enabled: true };
}

/** A drop-in, `<unit>.d/<name>`, for a unit of the installer. It has no effect without that unit. */
export const renderDropIn = (unit: string, name: string): Unit => ({
  name: unit,
  dropins: [{ name, contents: renderText(`units/${unit}.d/${name}`) }],
});

/** A unit that something else starts: another unit, a path, a udev rule. */
export function renderUnit(name: string, holes: Holes = {}): Unit {
  return { name, contents: renderText(`units/${name}`, holes) };
}

const HOLE = /\{\{ ([a-z][a-z0-9-]*) \}\}/g;

/**
 * Fills the holes `{{ name }}` of a text, without logic or escaping. Go templates (`{{.Id}}`, for a command
 * in a script) are left alone.
 *
 * A hole without a value, a value without a hole and a misspelt hole are bugs and thrown as such.
 */
export function renderTemplate(text: string, holes: Readonly<Record<string, string>>): string {
  const stray = /\{\{(?![.]| [a-z][a-z0-9-]* \}\})[^\n]{0,20}/.exec(text);
  if (stray) throw new Error(`template has the malformed hole "${stray[0]}"`);
  const unused = new Set(Object.keys(holes));
  const rendered = text.replaceAll(HOLE, (_, name: string) => {
    const value = Object.hasOwn(holes, name) ? holes[name] : undefined;
    if (value === undefined) throw new Error(`template has the hole "${name}" but no value for it`);
    unused.delete(name);
    return value;
  });
  if (unused.size > 0) throw new Error(`template has no hole "${[...unused].join('", "')}"`);
  return rendered;
}

/** TCP port of the registry on every node, in the flow of 4.21 and later. */
export const NODE_REGISTRY_PORT = 22625;

/** TCP port at which an attached upgrade ISO is served. */
export const UPGRADE_REGISTRY_PORT = 5001;

/** With the interactive flow the machine config operator takes the registry over and expects this name. */
export const nodeRegistryDomain = (interactive: boolean): string =>
  interactive ? 'localhost' : 'registry.appliance.openshift.com';

export type RegistryImage = {
  /** The reference from which it was copied, digest included. */
  readonly reference: string;
  /** True for the payload's docker-registry image, whose entrypoint does not start the server. */
  readonly useDistributionEntrypoint: boolean;
};

/** The booted ISO, or the partition `agentdata` of the disk that was booted. */
export type RegistryCarrier = 'iso' | 'partition';

export type NodeRegistry = {
  readonly image: RegistryImage;
  readonly interactive: boolean;
  /** The booted medium, or a host that runs from its disk. */
  readonly stage: 'live' | 'installed';
  /** Default: `iso`. */
  readonly registryOn?: RegistryCarrier;
  /** True if the cluster has its own registry, which serves the copy of the installer. */
  readonly internalReleaseImage?: boolean;
};

/** Scripts, unit and environment. */
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
        'carrier': registry.registryOn ?? 'iso',
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

/** Needed by a host's own registry and by that of an upgrade ISO before they start. */
export const renderRegistryScripts = (domain: string): readonly File[] => [
  renderScript('load-local-registry-image.sh'),
  renderScript('certify-local-registry.sh', { domain }),
];

/** For an image from the release; the entrypoint of other images starts the server. */
const DISTRIBUTION = {
  options: '--user=0 --entrypoint=/usr/bin/distribution',
  command: 'serve /etc/registry/config.yaml',
};

const startOf = ({ useDistributionEntrypoint }: RegistryImage): typeof DISTRIBUTION =>
  useDistributionEntrypoint ? DISTRIBUTION : { options: '', command: '' };

/** `data` and `certs` are paths of the host, `options` is for podman and `command` for the image. */
export const renderRegistryRun = (
  run: Readonly<Record<'name' | 'data' | 'certs' | 'port' | 'options' | 'command', string>>,
): string => renderText('units/run-registry', run);

/** `/etc/assisted/registry.env`; installed hosts know the place of an upgrade ISO. */
export function renderRegistryEnvironment({ image, stage }: NodeRegistry): File {
  const lines = [
    `REGISTRY_IMAGE=${image.reference}`,
    'REGISTRY_DATA=/mnt/agentdata/',
    `REGISTRY_UPGRADE=${stage === 'live' ? '' : '/media/upgrade/oc-mirror/install'}`,
  ];
  return textFile('/etc/assisted/registry.env', `${lines.join('\n')}\n`, 0o644);
}
