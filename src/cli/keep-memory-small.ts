import { keepGarbageSmall, keepNewSmall } from './host.ts';

// This module must be the first that the program loads: the space of new objects would grow while
// the rest is loaded, and it does not shrink again. Options may come before the command.
if (process.argv.includes('serve')) {
  keepGarbageSmall();
  keepNewSmall();
}
