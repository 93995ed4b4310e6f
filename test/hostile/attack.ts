/** An input that grows: what is prepared is not measured, what it returns is. */
export type Attack = {
  /** Of the first run; then twice and four times as much. */
  readonly size: number;
  readonly prepare: (size: number, folder: string) => Work | Promise<Work>;
};
export type Work = () => unknown;

export const many = (text: string, size: number): string =>
  text.repeat(Math.ceil(size / text.length)).slice(0, size);

export const nest = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;

export const digestOfNumber = (value: number): `sha256:${string}` =>
  `sha256:${value.toString(16).padStart(64, '0')}`;

export const MIB = 2 ** 20;
