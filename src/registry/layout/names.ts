import { ConfigError } from '../../base/errors.ts';

// distribution-spec 1.1, "Pulling manifests": the grammars of <name> and of a tag.
const REPOSITORY =
  /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/;
const TAG = /^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/;

/** No file system and no client takes longer ones; it also bounds what the grammar has to look at. */
const MAX_REPOSITORY_SIZE = 255;

export const isRepository = (text: string): boolean =>
  text.length <= MAX_REPOSITORY_SIZE && REPOSITORY.test(text);

export const isTag = (text: string): boolean => TAG.test(text);

/** @throws ConfigError `reference.malformed` */
export function checkRepository(text: string): void {
  if (!isRepository(text)) throw malformed(text, 'repository name');
}

/** @throws ConfigError `reference.malformed` */
export function checkTag(text: string): void {
  if (!isTag(text)) throw malformed(text, 'tag');
}

const malformed = (text: string, what: string): ConfigError =>
  new ConfigError('reference.malformed', `"${text}" is not a valid ${what}`);
