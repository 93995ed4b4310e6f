import { compare, getRounds } from 'bcryptjs';
import { ConfigError } from '../../../base/errors.ts';

/** An empty hash makes the node delete the password's secret. */
const BCRYPT = /^(\$2[aby]\$\d\d\$[./A-Za-z0-9]{53})?$/;

/** Each one more takes twice the time; openshift-install writes 10, which is a tenth of a second. */
const MAX_PROVED_COST = 12;

/** The files of a password, for errors, which never quote what is in them. */
type PasswordFiles = { readonly hash: string; readonly text: string };

/**
 * Refuses a hash that the node could not use, and a password that is not the one of the hash: it
 * would be handed out and open nothing. A hash that takes long is taken as it is.
 *
 * @param password as it is in the files, the text undefined where there is none; an empty one counts as absent
 * @throws ConfigError `retained.password`, `retained.mismatch`
 */
export async function proveRetainedPassword(
  { bcrypt, text = '' }: { readonly bcrypt: string; readonly text?: string | undefined },
  files: PasswordFiles,
): Promise<void> {
  if (!BCRYPT.test(bcrypt) || bcrypt.endsWith('\n')) {
    throw new ConfigError('retained.password', `${files.hash} is not a bcrypt hash`, {
      hint: 'write "$2a$10$" and 53 characters, without a newline at the end',
    });
  }
  if (text !== text.trim()) {
    const message = `${files.text} has white space around the password`;
    throw new ConfigError('retained.password', message, { hint: 'remove it, newline included' });
  }
  if (text === '' || (await isOfHash(text, bcrypt))) return;
  throw new ConfigError('retained.mismatch', `${files.text} is not the password of ${files.hash}`, {
    hint: 'give both of one run, or the hash alone',
  });
}

const isOfHash = async (text: string, bcrypt: string): Promise<boolean> =>
  bcrypt !== '' && (getRounds(bcrypt) > MAX_PROVED_COST || (await compare(text, bcrypt)));
