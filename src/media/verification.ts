/** Something on the medium that is not as it should be. */
export type VerifyProblem = {
  /** `lost`: the file ends before it. */
  readonly kind: 'structure' | 'index' | 'content' | 'lost' | 'registry' | 'bundle';
  readonly problem: string;
  readonly path?: string;
  /** Names of the images that need the damaged bytes. */
  readonly images?: readonly string[];
  readonly offset?: number;
  readonly size?: number;
  readonly expected?: string;
  readonly found?: string;
};

export type Verification = {
  readonly ok: boolean;
  readonly problems: readonly VerifyProblem[];
  /** Names of all images that need bytes that are damaged or lost, sorted. */
  readonly damagedImages: readonly string[];
  /** Unusual, but harmless. */
  readonly oddities: readonly string[];
  /** What could be checked; bytes are those that were hashed. */
  readonly checked: { readonly extents: number; readonly bytes: number; readonly images: number };
};

export type VerifyOptions = {
  readonly signal: AbortSignal;
  readonly onProgress: (bytes: number, total?: number) => void;
};

export type Report = (problem: VerifyProblem) => void;
