import type { HttpRequestEvent } from '../base/http/body.ts';
import type { RetryEvent } from '../base/retry.ts';

/** Why a stage runs and is not reused. */
export type StageReason = 'never-reused' | 'first-run' | 'inputs-changed' | 'result-unusable';

/**
 * What a run tells whoever draws it. Events are facts in the order they happened; `--log-format
 * json` prints each as one line. No event carries a secret.
 */
export type BuildEvent =
  | { readonly type: 'stage-started'; readonly stage: string; readonly reason?: StageReason }
  /** The stage's inputs did not change: its last result is used. */
  | { readonly type: 'stage-reused'; readonly stage: string }
  /** Bytes so far; `total` where it is known; `note` says what is being worked on. */
  | {
      readonly type: 'stage-progress';
      readonly stage: string;
      readonly bytes: number;
      readonly total?: number;
      readonly note?: string;
    }
  | { readonly type: 'stage-done'; readonly stage: string; readonly milliseconds: number }
  | { readonly type: 'stage-failed'; readonly stage: string; readonly message: string }
  | RetryEvent
  | HttpRequestEvent
  | { readonly type: 'warning'; readonly message: string };

export type EventListener = (event: BuildEvent) => void;
