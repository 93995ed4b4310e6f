import { keepGarbageSmall, keepNewSmall } from './host.ts';

// The first thing that the program does: the space of new objects would grow while the rest of it is read,
// and does not shrink again. Options may come before the command.
if (process.argv.includes('serve')) {
  keepGarbageSmall();
  keepNewSmall();
}
