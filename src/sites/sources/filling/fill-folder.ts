import { formatSize } from '../../../base/text/words.ts';
import { parseTemplate, placeHoles, type Template } from './fill-template.ts';
import { readFolder } from '../read-folder.ts';
import { MAX_FILE } from '../read-limits.ts';
import { REFUSED, UNUSED, type SiteMember, type SiteProblem } from '../read-list.ts';
import { CONFIG_FILES, isInput } from '../read-members.ts';
import { printable } from '../read-path.ts';

/** A file of a template folder: its path and its text, both with holes. */
export type TemplateFile = {
  readonly shownAs: string;
  readonly name: Template;
  readonly content: Template;
  /** Bytes before anything is put in. */
  readonly size: number;
  /** Where `file:` references of the filled file begin. */
  readonly directory: string;
};

export type TemplateFolder = {
  readonly files: readonly TemplateFile[];
  /** With an error among them, no site can be made. */
  readonly problems: readonly SiteProblem[];
};

/**
 * Reads the folder that a table fills: the files of one site, UTF-8, with holes in texts and names.
 *
 * @throws ConfigError `sites.unreadable`, `sites.changed`
 */
export async function readTemplateFolder(
  path: string,
  signal: AbortSignal,
): Promise<TemplateFolder> {
  const { members } = await readFolder(path, signal);
  const files: TemplateFile[] = [];
  const problems: SiteProblem[] = [];
  for (const member of members.filter(({ kind }) => kind !== 'folder')) {
    const shownAs = `${path}/${printable(member.path)}`;
    const file = await readTemplateFile(member, shownAs);
    if ('severity' in file) problems.push(file);
    else files.push(file);
  }
  for (const { shownAs, name, content } of files) {
    for (const fault of [...name.faults, ...content.faults]) {
      problems.push({ ...REFUSED, name: '', file: shownAs, ...fault });
    }
  }
  const missing = CONFIG_FILES.filter((file) => !members.some((member) => member.path === file));
  if (missing.length > 0) problems.push(toError(path, `has no ${missing.join(' and no ')}`));
  return { files, problems };
}

async function readTemplateFile(
  { path, kind, size, read, directory = '' }: SiteMember,
  shownAs: string,
): Promise<TemplateFile | SiteProblem> {
  if (typeof kind === 'object') return toError(shownAs, kind.other);
  if (!isInput(path)) return { ...toError(shownAs, 'is not used'), ...UNUSED };
  if (size > MAX_FILE) {
    return toError(shownAs, `has ${formatSize(size)}, and a file may have ${formatSize(MAX_FILE)}`);
  }
  const text = decode(await read());
  if (text === undefined) return toError(shownAs, 'is not UTF-8');
  const content = placeHoles(parseTemplate(text));
  return { shownAs, name: parseTemplate(path), content, size, directory };
}

const toError = (shownAs: string, problem: string): SiteProblem => ({
  ...REFUSED,
  name: '',
  file: shownAs,
  problem,
});

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined; // the answer, which the caller reports
  }
}
