/** What the source registry of the bench is to hold. */
export type SourceShape = {
  /** Bytes of the release's layers. */
  readonly size: number;
  /** Images of the release, besides those that a live ISO cannot do without. */
  readonly images: number;
  /** Blobs of an image that no other has. */
  readonly own: number;
  /** Each night another twentieth of the images has new layers; absent: as first published. */
  readonly night?: number;
  /** Of the release. */
  readonly version?: string;
  /** Path of the base ISO. */
  readonly base: string;
  /** PEM texts; plain HTTP without. */
  readonly tls?: { readonly key: string; readonly cert: string };
  /** A catalog beside the release; all images are signed then. */
  readonly operators?: OperatorShape;
};

export type OperatorShape = {
  readonly packages: number;
  /** Images of the newest bundles of all packages; those of older ones are nowhere. */
  readonly images: number;
};

export type PublishedOperators = {
  /** Reference by tag. */
  readonly catalog: string;
  /** Names of all packages of the catalog. */
  readonly packages: readonly string[];
};

/** Bytes that a source has sent since it began, and those of them that nobody has received yet. */
export type Served = { readonly served: number; readonly undelivered: number };

/** The folder with the signature of a release and the key to it, beside the base ISO. */
export const findSignatures = ({ base }: Pick<SourceShape, 'base'>, pullspec: string): string =>
  `${base}-${pullspec.slice(-12)}`;
