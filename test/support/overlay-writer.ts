import { storeOverlay } from '../../src/media/serve/overlay.ts';

/** `overlay-writer DIRECTORY TEXT`: stores an overlay with this text, and prints the digest of what is stored. */
const [directory = '', text = ''] = process.argv.slice(2);
const place = { directory, name: 'one', key: Buffer.alloc(32, 'key') };
const { digest } = await storeOverlay(place, [{ offset: 0, bytes: Buffer.from(text) }]);
process.stdout.write(digest);
