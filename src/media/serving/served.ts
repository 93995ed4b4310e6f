/** What is served: bytes of a known size that never change under their ETag. */
export type Served = {
  /** Bytes. */
  readonly size: number;
  /** Strong (RFC 9110 8.8.3), with its quotes. */
  readonly etag: string;
  /**
   * Fills the buffer with the bytes from `offset`; at once, and without a promise, where they are at hand. Nothing
   * writes to the buffer any more when it settles.
   */
  readonly fill: (bytes: Buffer, offset: number, signal: AbortSignal) => Promise<void> | undefined;
};

export type ServeOptions = {
  /** Default: `application/octet-stream`. */
  readonly contentType?: string;
  /** Has the client save it under this name. */
  readonly filename?: string;
  readonly lastModified?: Date;
};
