import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { startS3Front } from '../test/support/s3-front.ts';
import { startSwift } from '../test/support/swift.ts';
import { prepare, type Site } from './build.ts';
import { addFigures, type Figures } from './figures.ts';
import { runSealift, startSource } from './run.ts';
import type { SourceShape } from './source-shape.ts';

const BUCKET = 'nightly';

/**
 * The ISOs of two nights, built into the same object of Swift; the second has 5 % of its images changed. What
 * is sent is counted on its way to the service.
 */
export async function benchObject(shape: SourceShape, site: Site, figures: Figures): Promise<void> {
  const folder = join(site.directory, 'swift');
  mkdirSync(folder);
  const swift = await startSwift(folder);
  const front = await startS3Front(swift.endpoint);
  Object.assign(process.env, swift.env, { AWS_ENDPOINT_URL_S3: front.endpoint });
  try {
    await new S3Client({ forcePathStyle: true }).send(new CreateBucketCommand({ Bucket: BUCKET }));
    const nights = [await sendNight(shape, site), await sendNight({ ...shape, night: 1 }, site)];
    const [first, second] = nights.map(({ seconds, isoSize }, night) => {
      console.log(`  object: night ${night} of ${isoSize} bytes in ${seconds.toFixed(1)} s`);
      return isoSize;
    });
    const sent = front.sent() - (first ?? NaN);
    addFigures(figures, { objectNight: { value: sent / (second ?? NaN), atMost: 0.06 } });
  } finally {
    await front.close();
    await swift.stop();
    rmSync(folder, { recursive: true });
  }
}

/** A build that has nothing but the object of the night before. */
async function sendNight(
  shape: SourceShape,
  site: Site,
): Promise<{ readonly seconds: number; readonly isoSize: number }> {
  const source = await startSource(shape);
  try {
    const work = prepare('reuse-object', source, site);
    const output = `s3://${BUCKET}/appliance.iso`;
    const { seconds, stdout } = await runSealift(['build', '--output', output, '-o', 'json'], work);
    const { isoSize } = JSON.parse(stdout) as { isoSize: number };
    return { seconds, isoSize };
  } finally {
    await source.stop();
  }
}
