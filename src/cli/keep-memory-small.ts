import { keepGarbageSmall, keepNewSmall } from './host.ts';

// The program does this first: the space of new objects would grow while the rest of the program is
// loaded, and it does not shrink again. Options may come before the command.
if (process.argv.includes('serve')) {
  keepGarbageSmall();
  keepNewSmall();
}
