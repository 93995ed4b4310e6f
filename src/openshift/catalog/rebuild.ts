import { digestOf, type Digest } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import { isObject } from '../../base/lists.ts';
import type { Catalog } from '../../fbc/index.ts';
import {
  type Descriptor,
  MEDIA_TYPE,
  parseStored,
  type StoredManifest,
} from '../../registry/index.ts';
import { CONFIGS_LABEL } from './configs.ts';
import type { CatalogImage, CatalogPlatformImage } from './image.ts';
import { CONFIGS_DIRECTORY, packCatalog, packWhiteouts } from './layer.ts';

/** A blob that no registry has yet. */
export type NewBlob = { readonly descriptor: Descriptor; readonly bytes: Uint8Array };

export type RebuiltCatalog = {
  readonly top: StoredManifest;
  /** The top manifest first, then its children if it is an index. */
  readonly manifests: readonly StoredManifest[];
  /** Configs and added layers; all other blobs belong to the original. */
  readonly blobs: readonly NewBlob[];
};

export type RebuildInput = {
  readonly image: CatalogImage;
  /** Directory to which the catalog was extracted, and from which `source` was read. */
  readonly directory: string;
  readonly source: Catalog;
  /** Part of `source`. */
  readonly filtered: Catalog;
};

const SERVE = ['serve', `/${CONFIGS_DIRECTORY}`];

const CREATED_BY = 'sealift';

/** Docker image manifest v2, schema 2; not compressed, so that the digest does not depend on a zlib. */
const DOCKER_LAYER = 'application/vnd.docker.image.rootfs.diff.tar';

type JsonObject = Record<string, unknown>;

/**
 * A catalog image with another catalog in it: for every platform, two layers on top of the original's hide
 * the old catalog and its cache and bring the filtered one. The label names the new directory, `Cmd` serves
 * it without the cache; everything else is preserved. Same input, same bytes.
 *
 * An index is rebuilt with the platforms that were opened; if one platform was asked for, its manifest alone.
 * The layers are held in memory: see `packCatalog`.
 *
 * @throws the errors of `packCatalog`; IntegrityError `catalog.config-malformed`
 */
export async function rebuildCatalog(input: RebuildInput): Promise<RebuiltCatalog> {
  const { image, directory, source, filtered } = input;
  const layers = [
    await packWhiteouts(image.configsDirectory),
    await packCatalog(directory, { source, filtered }),
  ].map((bytes) => ({ bytes, digest: digestOf(bytes) }));
  const { entrypoint } = image;
  const rebuilt = image.images.map((one) => rebuildImage(one, { layers, entrypoint }));
  const manifests = rebuilt.map(({ manifest }) => manifest);
  const blobs = new Map(rebuilt.flatMap((one) => one.blobs).map((b) => [b.descriptor.digest, b]));
  const [only] = manifests;
  if (only === undefined) throw new RangeError('catalog image has no platform');
  if (image.top.manifest.kind === 'manifest' || image.selected !== undefined) {
    return { top: only, manifests: [only], blobs: [...blobs.values()] };
  }
  const replaced = new Map(
    image.images.map(({ stored }, at) => [stored.descriptor.digest, manifests[at] ?? only]),
  );
  const top = rebuildIndex(image.top, replaced);
  const children = new Map(manifests.map((one) => [one.descriptor.digest, one]));
  return { top, manifests: [top, ...children.values()], blobs: [...blobs.values()] };
}

type AddedLayer = { readonly bytes: Buffer; readonly digest: Digest };

type Addition = {
  readonly layers: readonly AddedLayer[];
  readonly entrypoint: readonly string[] | undefined;
};

function rebuildImage(
  { manifest, stored, config }: CatalogPlatformImage,
  addition: Addition,
): { readonly manifest: StoredManifest; readonly blobs: readonly NewBlob[] } {
  const isDocker = manifest.mediaType === MEDIA_TYPE.dockerManifest;
  const mediaType = isDocker ? DOCKER_LAYER : MEDIA_TYPE.ociLayer;
  const added = addition.layers.map(({ bytes, digest }) => ({
    descriptor: { mediaType, digest, size: bytes.length },
    bytes,
  }));
  const newConfig = encodeJson(editConfig(parseObject(config), addition));
  const configBlob = {
    descriptor: {
      mediaType: manifest.config.mediaType,
      digest: digestOf(newConfig),
      size: newConfig.length,
    },
    bytes: newConfig,
  };
  const document = parseObject(stored.bytes);
  const { digest, size } = configBlob.descriptor;
  document['config'] = { ...asObject(document['config']), digest, size };
  document['layers'] = [
    ...(document['layers'] as unknown[]),
    ...added.map(({ descriptor }) => descriptor),
  ];
  return { manifest: store(document, manifest.mediaType), blobs: [...added, configBlob] };
}

/** Image-spec config.md. History exists for all layers or for no layer. */
function editConfig(document: JsonObject, { layers, entrypoint }: Addition): JsonObject {
  const config = asObject(document['config']);
  const rootfs = asObject(document['rootfs']);
  const { history, created } = document;
  if (!Array.isArray(rootfs['diff_ids'])) throw malformed('has no list rootfs.diff_ids');
  const entry = { ...(typeof created === 'string' && { created }), created_by: CREATED_BY };
  return {
    ...document,
    config: {
      ...config,
      ...(entrypoint && { Entrypoint: entrypoint }),
      Cmd: SERVE,
      Labels: { ...asObject(config['Labels']), [CONFIGS_LABEL]: `/${CONFIGS_DIRECTORY}` },
    },
    rootfs: {
      ...rootfs,
      diff_ids: [...(rootfs['diff_ids'] as unknown[]), ...layers.map(({ digest }) => digest)],
    },
    ...(Array.isArray(history) && {
      history: [...(history as unknown[]), ...layers.map(() => entry)],
    }),
  };
}

/** Entries keep platform and annotations; entries that were not rebuilt are removed. */
function rebuildIndex(
  top: StoredManifest,
  replaced: ReadonlyMap<Digest, StoredManifest>,
): StoredManifest {
  const document = parseObject(top.bytes);
  document['manifests'] = (document['manifests'] as JsonObject[]).flatMap((entry) => {
    const one = replaced.get(entry['digest'] as Digest);
    return one ? [{ ...entry, digest: one.descriptor.digest, size: one.descriptor.size }] : [];
  });
  return store(document, top.manifest.mediaType);
}

function store(document: JsonObject, mediaType: string): StoredManifest {
  const bytes = encodeJson(document);
  return parseStored(bytes, digestOf(bytes), mediaType);
}

const encodeJson = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

const asObject = (value: unknown): JsonObject => (isObject(value) ? value : {});

function parseObject(bytes: Uint8Array): JsonObject {
  const value: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'));
  if (isObject(value)) return value;
  throw malformed('is not an object');
}

const malformed = (reason: string): IntegrityError =>
  new IntegrityError('catalog.config-malformed', `config of the catalog image ${reason}`);
