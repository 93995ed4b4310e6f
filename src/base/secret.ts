import { inspect } from 'node:util';

const MASK = '[redacted]';

/**
 * A value that no log, error, report or JSON text shows by accident: every way of printing the
 * object gives a mask. `reveal` is the one way to the value, easy to find in a review.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return MASK;
  }

  toJSON(): string {
    return MASK;
  }

  [inspect.custom](): string {
    return MASK;
  }
}
