import { ConfigError, IntegrityError } from '../../base/errors.ts';
import {
  extractTree,
  IMAGE_CONFIG,
  parseImageConfig,
  type ImageConfig,
  type Layer,
} from '../../registry/index.ts';
import { decodeJson, GO_RULES, ifFaultless } from '../../shape/decode.ts';

/* The directory of a file-based catalog in its image: the label that names it, and its files. */

/** The image config label that names the directory of the catalog (operator-registry, `opm`). */
export const CONFIGS_LABEL = 'operators.operatorframework.io.index.configs.v1';

/** The layers of an image, bottom to top, with its config. */
type ConfiguredLayers = { readonly layers: readonly Layer[]; readonly config: Uint8Array };

/**
 * Unpacks the directory of a catalog to `output`, which appears by rename. Opens only layers that may have
 * it, by the history in the config.
 *
 * @throws the errors of `extractTree`
 */
export async function extractConfigs(
  { layers, config }: ConfiguredLayers,
  directory: string,
  { output, signal }: { readonly output: string; readonly signal: AbortSignal },
): Promise<void> {
  const touching = listTouching(config, layers.length, directory);
  const mayTouch = (layer: Layer): boolean => touching[layers.indexOf(layer)] ?? true;
  await extractTree(layers, directory, output, { signal, mayTouch });
}

/**
 * The directory of the catalog, by the label in the config of its image, without slashes around it.
 *
 * @throws ConfigError `catalog.no-label`, `catalog.label-malformed`
 */
export function readConfigsLabel({ config }: ImageConfig, name: string): string {
  const { Labels: labels } = config;
  const label = labels[CONFIGS_LABEL];
  if (label === undefined) {
    const found = Object.keys(labels).sort().join(', ') || 'no labels';
    throw new ConfigError(
      'catalog.no-label',
      `image ${name} is not a file-based catalog: it has no label ${CONFIGS_LABEL}`,
      { expected: CONFIGS_LABEL, found, hint: `name a catalog image; this one has ${found}` },
    );
  }
  const names = label.split('/').filter((one) => !['', '.'].includes(one));
  if (names.length > 0 && !names.includes('..') && !label.includes('\0')) return names.join('/');
  throw new ConfigError(
    'catalog.label-malformed',
    `image ${name} has the label ${CONFIGS_LABEL}=${JSON.stringify(label)}, which does not name a directory below its root`,
    { expected: '/configs', found: label },
  );
}

/** @throws IntegrityError `catalog.config-malformed` */
export const parseCatalogConfig = (bytes: Uint8Array, name: string): ImageConfig =>
  parseImageConfig(bytes, (problem) => {
    const message = `image config of ${name}: ${problem}`;
    return new IntegrityError('catalog.config-malformed', message);
  });

/**
 * True for a layer, bottom to top, that may touch a directory (without slashes around it), by the history of
 * the config (OCI image-spec config.md): `ADD` and `COPY` touch the path they name and everything below it;
 * everything else, such as `RUN`, all paths, as does every layer if history and layers differ in number.
 */
function listTouching(config: Uint8Array, layers: number, directory: string): readonly boolean[] {
  const { history = [] } = ifFaultless(decodeJson(IMAGE_CONFIG, config, GO_RULES)) ?? {};
  const made = history.filter((entry) => entry.empty_layer !== true);
  if (made.length !== layers) return Array<boolean>(layers).fill(true);
  return made.map((entry) => {
    const target = readTarget(entry.created_by ?? '');
    return target === undefined || isRelated(target, directory);
  });
}

/** docker and buildah: `/bin/sh -c #(nop) COPY dir:HASH in /configs`. */
const CLASSIC = /^\/bin\/sh -c #\(nop\) +(?:ADD|COPY) [^\s"[\]]+ in (\/[^\s"'[\]]*) *$/;

/** BuildKit: `COPY --chown=1001 catalog /configs # buildkit`. */
const BUILDKIT = /^(?:ADD|COPY) (?:[^\s"'[\]]+ )+(\/[^\s"'[\]]*) # buildkit$/;

/** Without slashes around it; undefined for other commands. */
function readTarget(command: string): string | undefined {
  const target = (CLASSIC.exec(command) ?? BUILDKIT.exec(command))?.[1];
  const names = target?.split('/').filter((name) => !['', '.'].includes(name));
  return names === undefined || names.includes('..') ? undefined : names.join('/');
}

const isRelated = (a: string, b: string): boolean => isWithin(a, b) || isWithin(b, a);

const isWithin = (path: string, directory: string): boolean =>
  directory === '' || path === directory || path.startsWith(`${directory}/`);
