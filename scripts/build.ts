import { buildProgram } from './bundle.ts';

await buildProgram();
