import type { FileInput } from '../base/disk/file-input.ts';

/** The file alone, without where it came from: the same bytes make the same results. */
export async function fileOf(file: FileInput | Promise<FileInput>): Promise<FileInput> {
  const { path, size, digest } = await file;
  return { kind: 'file', path, size, digest };
}
