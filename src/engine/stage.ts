/** What a running stage may tell, and what tells it to stop. */
export type StageContext = {
  /** Aborted when the run is interrupted or another stage failed. */
  readonly signal: AbortSignal;
  readonly onProgress: (bytes: number, total?: number, note?: string) => void;
  readonly warn: (message: string) => void;
};

/** A secret: fingerprints show a keyed digest of it, and nothing else ever shows it. */
export type Sealed = { reveal: () => string };

/** What a stage can be made from: plain values all the way down. A function could read anything. */
export type StageValue =
  | null
  | undefined
  | boolean
  | number
  | string
  | Uint8Array
  | Sealed
  | readonly StageValue[]
  | { readonly [key: string]: StageValue };

/** Whether an earlier result may stand for a new one. */
export type Reuse<Output> =
  | {
      /** While the inputs and this program are the same. */
      readonly kind: 'same-program';
      /** Whether what the result names is still there. */
      readonly isUsable: (result: Output) => Promise<boolean> | boolean;
    }
  /**
   * For what is drawn at random: while the inputs are the same, whatever the program. Results for other
   * inputs stay beside it, so that going back to earlier inputs gives the earlier result.
   */
  | { readonly kind: 'drawn' };

/**
 * A step of a build. Stages are values at the top of a module: they cannot see the request that they work
 * for, so all that they read is in `inputs`, which their fingerprint covers, or in `tools`, which are the
 * same for every stage of a run.
 */
export type Stage<Inputs extends Plain<Inputs>, Output, Tools> = Step<Inputs, Output, Tools>;

/** An object whose members are all plain values. */
export type Plain<Inputs> = { readonly [K in keyof Inputs]: StageValue };

/** A stage whose inputs were checked where it was defined. */
export type Step<Inputs, Output, Tools> = {
  /** Verb and noun; the name of its file. */
  readonly name: string;
  readonly run: (inputs: Inputs, tools: Tools, context: StageContext) => Promise<Output>;
  /** Absent: it runs each time. */
  readonly reuse?: Reuse<Output>;
};
