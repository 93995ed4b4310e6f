import { IntegrityError } from '../../base/errors.ts';
import { sumSizes } from '../../base/lists.ts';
import {
  type Descriptor,
  formatReference,
  readFiles,
  type Reference,
} from '../../registry/index.ts';
import { openImage, openLayers, type ImageTools, type OpenImage } from '../images.ts';
import { platformOf, type RpmArchitecture } from './bundle.ts';
import { type AdminGates, readAdminGates } from './gates.ts';
import { isPayloadFile, NAMED_FILES, readMetadata } from './payload.ts';

/**
 * Reads the last layer, and all layers, which are small, only if it does not have the files.
 *
 * @throws IntegrityError `release.too-large`, and the errors of fetching blobs
 */
export async function fetchPayloadFiles(
  tools: ImageTools,
  { reference, image }: OpenImage,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const read = (descriptors: readonly Descriptor[]): Promise<Map<string, Uint8Array>> =>
    readFiles(openLayers(tools, reference, descriptors), isPayloadFile, { signal: tools.signal });
  const last = image.layers.slice(-1);
  refuseLarge(last, reference);
  const files = await read(last);
  const isWhole = NAMED_FILES.every((path) => files.has(path)) || isLarge(image.layers);
  return isWhole ? files : await read(image.layers);
}

/**
 * @throws the errors of the client and of `fetchPayloadFiles`; IntegrityError `release.malformed`,
 * `release.manifest-unreadable`
 */
export async function fetchAdminGates(
  tools: ImageTools,
  reference: Reference,
  arch: RpmArchitecture,
): Promise<{ readonly version: string; readonly adminGates: AdminGates }> {
  const opened = await openImage(tools, reference, platformOf(arch));
  const files = await fetchPayloadFiles(tools, opened);
  const { version } = readMetadata(files, opened.reference);
  return { version, adminGates: readAdminGates(files) };
}

/** Bytes fetched before the signature is verified; real release manifests take 3 MiB. */
const MAX_FETCHED = 64 << 20;

const isLarge = (layers: readonly Descriptor[]): boolean => sumSizes(layers) > MAX_FETCHED;

function refuseLarge(last: readonly Descriptor[], reference: Reference): void {
  if (!isLarge(last)) return;
  const [found] = last.map(({ size }) => String(size));
  throw new IntegrityError(
    'release.too-large',
    `the last layer of payload ${formatReference(reference)} should have at most ${MAX_FETCHED} bytes, but has ${found}`,
    {
      expected: `at most ${MAX_FETCHED}`,
      found: found ?? '',
      hint: 'name a release image that "oc adm release new" made',
    },
  );
}
