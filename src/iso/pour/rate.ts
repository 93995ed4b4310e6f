const WINDOW_MS = 250;

/** Bytes a second over the last moments, updated every quarter of a second. */
export class RateMeter {
  #started = performance.now();
  #bytes = 0;
  #rate = 0;

  add(bytes: number): void {
    this.#rotate();
    this.#bytes += bytes;
  }

  /** Bytes a second. */
  read(): number {
    this.#rotate();
    return this.#rate;
  }

  #rotate(): void {
    const elapsed = performance.now() - this.#started;
    if (elapsed < WINDOW_MS) return;
    this.#rate = (this.#bytes * 1000) / elapsed;
    this.#bytes = 0;
    this.#started += elapsed;
  }
}
