import type { CommanderError } from 'commander';
import { UsageError } from '../../base/errors.ts';

/** What commander says of a command line, as any other foreseen failure. */
export function toUsageError({ code, message }: CommanderError): UsageError {
  const [text = '', guess] = message.replace(/^error: /, '').split('\n');
  const meant = /^\(Did you mean (.*)\?\)$/.exec(guess ?? '')?.[1];
  return new UsageError(codeOf(code), describe(code, text), {
    hint: meant === undefined ? 'run the command with --help' : `did you mean "${meant}"?`,
  });
}

/** `commander.unknownOption` is `usage.unknown-option`. */
const codeOf = (code: string): string =>
  code === 'commander.help'
    ? 'usage.no-command'
    : code
        .replace(/^commander\./, 'usage.')
        .replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** Without a command, commander prints the help and has no sentence for it. */
const describe = (code: string, text: string): string =>
  code === 'commander.help' ? 'no command is given' : text;
