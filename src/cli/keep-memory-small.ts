import { keepGarbageSmall, keepNewSmall, optimizeLate } from './host.ts';

// Imported before the rest of the program: the space of new objects grows while that is loaded, and
// never shrinks. Options may come before the command, so all arguments are searched.
if (process.argv.includes('serve')) {
  keepGarbageSmall();
  keepNewSmall();
} else {
  optimizeLate();
}
