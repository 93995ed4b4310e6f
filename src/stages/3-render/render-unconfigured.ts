import { createHash } from 'node:crypto';
import { formatUuid, markUuid } from '../../base/uuid.ts';
import type { Stage } from '../../engine/index.ts';
import {
  decodeFileContent,
  type File,
  formatValidIgnition,
  type IgnitionConfig,
  parseIgnition,
  textFile,
} from '../../ignition/index.ts';
import { requireMadeFor, SERVICE_ENVIRONMENT } from '../../openshift/installer/made-for.ts';
import { adaptUnconfigured, renderEmbeddedUnconfigured } from '../../openshift/node/bootstrap.ts';
import type { NodeRelease } from '../../openshift/node/cluster.ts';

export type RenderUnconfiguredInput = {
  readonly release: NodeRelease;
  readonly interactive: boolean;
  readonly registriesConf: string;
  /** Output of the installer; absent if the embedded templates replace it. */
  readonly installed?: string | undefined;
};

/**
 * Renders the user's configuration without values of a site, as JSON text: the installer's output,
 * fitted to the medium, or the embedded templates.
 */
export const renderUnconfigured: Stage<RenderUnconfiguredInput, string, unknown> = {
  name: 'render unconfigured',
  run: (input) => Promise.resolve(formatValidIgnition(render(input), 'unconfigured configuration')),
};

function render({ installed, ...input }: RenderUnconfiguredInput): IgnitionConfig {
  if (installed === undefined) return renderEmbeddedUnconfigured(input);
  const output = parseIgnition(installed, 'unconfigured-agent.ign');
  requireMadeFor(output, input.release);
  const config = adaptUnconfigured(output, input);
  return settleInfraEnvId(config, input.release.digestReference);
}

/**
 * Replaces the random id that the installer draws for the infrastructure environment. Ours comes from the
 * release's digest: the same inputs give the same medium, and a resumed build finds the layout it began with.
 */
function settleInfraEnvId(config: IgnitionConfig, seed: string): IgnitionConfig {
  const files = config.storage?.files ?? [];
  return {
    ...config,
    storage: { ...config.storage, files: files.map((file) => settleFile(file, seed)) },
  };
}

function settleFile(file: File, seed: string): File {
  const text = file.path === SERVICE_ENVIRONMENT ? decodeFileContent(file) : undefined;
  if (text === undefined) return file;
  const settled = text
    .toString('utf8')
    .replace(/^INFRA_ENV_ID=.*$/m, `INFRA_ENV_ID=${seedUuid(seed)}`);
  const { contents } = textFile(file.path, settled, file.mode ?? 0o600);
  return contents === undefined ? file : { ...file, contents };
}

/** A UUID of version 8 (RFC 9562 5.8): bits of a SHA-256. */
function seedUuid(seed: string): string {
  const hash = createHash('sha256').update(`infra-env ${seed}`).digest();
  return formatUuid(markUuid(hash.subarray(0, 16), 8));
}
