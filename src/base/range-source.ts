/** Bytes somewhere else that are read by ranges: a URL, an object, an artifact. */
export type RangeSource = {
  /** Printable, without credentials. */
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** Changes when the bytes change (strong ETag, digest); absent where nothing tells. */
  readonly version?: string;
  /** The bytes of the range, in order; may end early when the connection dies (the caller resumes). */
  readonly open: (
    range: { readonly offset: number; readonly size: number },
    signal?: AbortSignal,
  ) => Promise<AsyncIterable<Uint8Array>>;
};
