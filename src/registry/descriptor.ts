import type { Digest } from '../base/digest.ts';

/** OCI image-spec, descriptor.md: what a blob or manifest is, how many bytes, and their digest. */
export type Descriptor = {
  readonly mediaType: string;
  readonly digest: Digest;
  /** Bytes. */
  readonly size: number;
  readonly urls?: readonly string[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly platform?: Platform;
  readonly artifactType?: string;
};

/** OCI image-index.md "platform"; architecture in Go's words (amd64, arm64, ppc64le, s390x). */
export type Platform = {
  readonly architecture: string;
  readonly os: string;
  readonly variant?: string;
};
