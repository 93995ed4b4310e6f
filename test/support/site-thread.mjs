// The thread for sites, out of TypeScript.
import { register } from 'tsx/esm/api';

register();
await import('../../src/recipes/config-iso/workers/site-thread.ts');
